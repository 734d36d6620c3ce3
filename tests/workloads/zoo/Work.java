// Threads behind a hot monitor (monitor) or a ReentrantLock (lock), fork and join (fork). Arguments: which, rounds.
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.locks.ReentrantLock;

public class Work {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static long ledger = 1;

    static long turn(long state, int turns) {
        for (int i = 0; i < turns; i++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
        }
        return state;
    }

    static void underLock() {
        ledger = turn(ledger, 120000);
    }

    static long outside(long state) {
        return turn(state, 40000);
    }

    static long tile(long state) {
        return turn(state, 2000000);
    }

    static class Sum extends RecursiveTask<Long> {
        final int from, to;

        Sum(int from, int to) {
            this.from = from;
            this.to = to;
        }

        protected Long compute() {
            long sum = 0;
            if (to - from <= 4) {
                for (int i = from; i < to; i++) sum ^= tile(i + 1);
                return sum;
            }
            Sum left = new Sum(from, (from + to) / 2), right = new Sum((from + to) / 2, to);
            left.fork();
            return right.compute() ^ left.join();
        }
    }

    public static void main(String[] words) throws Exception {
        int rounds = Integer.parseInt(words[1]);
        if (words[0].equals("fork")) {
            System.out.println(new ForkJoinPool(2).invoke(new Sum(0, rounds)));
            return;
        }
        boolean monitored = words[0].equals("monitor");
        Thread[] workers = new Thread[4];
        for (int me = 0; me < workers.length; me++) {
            long first = me + 1;
            workers[me] = new Thread(() -> {
                long state = first;
                for (int i = 0; i < rounds; i++) {
                    if (monitored) {
                        synchronized (monitor) {
                            underLock();
                        }
                    } else {
                        lock.lock();
                        try {
                            underLock();
                        } finally {
                            lock.unlock();
                        }
                    }
                    state = outside(state);
                }
                if (state == 0) System.out.println(state);
            }, "worker-" + me);
            workers[me].start();
        }
        for (Thread worker : workers) worker.join();
        System.out.println(ledger);
    }
}
