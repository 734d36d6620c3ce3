// As soak.c: threads, monitors, exceptions and garbage, and results compared.
import java.security.MessageDigest;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

public class Soak {
    static final AtomicBoolean STOP = new AtomicBoolean();
    static final AtomicLong ROUNDS = new AtomicLong();
    static final AtomicLong WRONG = new AtomicLong();
    static final Object LOCK = new Object();

    static int deep(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("on purpose");
        }
        return deep(depth - 1) + 1;
    }

    static long whole() throws Exception {
        byte[] sum = "start".getBytes();
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i < 200; i++) {
            byte[] garbage = new byte[512 + i];
            System.arraycopy(sum, 0, garbage, 0, Math.min(sum.length, 32));
            sum = digest.digest(garbage);
            synchronized (LOCK) {
                sum[0] ^= 1;
            }
        }
        int caught = 0;
        try {
            deep(100);
        } catch (IllegalStateException expected) {
            caught = 1;
        }
        return java.util.Arrays.hashCode(sum) * 31L + caught;
    }

    public static void main(String[] arguments) throws Exception {
        long expected = whole();
        Thread[] threads = new Thread[3];
        for (int n = 0; n < threads.length; n++) {
            threads[n] = new Thread(() -> {
                while (!STOP.get()) {
                    try {
                        if (whole() != expected) {
                            WRONG.incrementAndGet();
                        }
                    } catch (Throwable problem) {
                        WRONG.incrementAndGet();
                    }
                    ROUNDS.incrementAndGet();
                }
            });
            threads[n].start();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // To the end.
        }
        STOP.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(ROUNDS.get() + " rounds, " + WRONG.get() + " wrong");
        System.exit(WRONG.get() > 0 || ROUNDS.get() == 0 ? 1 : 0);
    }
}
