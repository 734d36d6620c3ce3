// Clients and a server share a small mailbox; whoever puts or takes something calls notifyAll (all), or signals who waits for just
// that (one). Arguments: which, messages of each client.
import java.util.ArrayDeque;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

public class Mailbox {
    static final int CLIENTS = 64;
    static final ArrayDeque<Long> messages = new ArrayDeque<>();
    static final ReentrantLock lock = new ReentrantLock();
    static final Condition filled = lock.newCondition(), emptied = lock.newCondition();
    static long answer(long state) {
        for (int i = 0; i < 700; i++) state ^= state << 13 ^ state >>> 7;
        return state;
    }

    static synchronized void putForAll(long message) throws InterruptedException {
        while (messages.size() >= 2) Mailbox.class.wait();
        messages.add(message);
        Mailbox.class.notifyAll();
    }

    static synchronized long takeFromAll() throws InterruptedException {
        while (messages.isEmpty()) Mailbox.class.wait();
        Mailbox.class.notifyAll();
        return messages.remove();
    }

    static void put(long message) throws InterruptedException {
        lock.lock();
        while (messages.size() >= 2) emptied.await();
        messages.add(message);
        filled.signal();
        lock.unlock();
    }

    static long take() throws InterruptedException {
        lock.lock();
        while (messages.isEmpty()) filled.await();
        long message = messages.remove();
        emptied.signal();
        lock.unlock();
        return message;
    }

    static Void send(boolean toAll, int many) throws InterruptedException {
        for (long i = 0; i < many; i++) if (toAll) putForAll(i + 1); else put(i + 1);
        return null;
    }

    public static void main(String[] words) throws Exception {
        boolean toAll = words[0].equals("all");
        int many = Integer.parseInt(words[1]);
        for (int me = 0; me < CLIENTS; me++) new Thread(new FutureTask<>(() -> send(toAll, many)), "client-" + me).start();
        long sum = 0;
        for (long i = 0; i < (long) CLIENTS * many; i++) sum ^= answer(toAll ? takeFromAll() : take());
        System.out.println(sum);
    }
}
