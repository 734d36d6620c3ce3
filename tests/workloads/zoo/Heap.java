// Two threads that count the words of short texts and keep what they saw last. How much the collector has to do is a matter of
// the heap's size (JAVA_TOOL_OPTIONS). Argument: thousands of texts.
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public class Heap {
    static final int KEPT = 60000;

    static String text(long number) {
        return "order " + number % 977 + " of customer " + number % 89 + " is " + (number % 3 == 0 ? "paid" : "open");
    }

    static int countWords(Map<String, Integer> counts, String text) {
        for (String word : text.split(" ")) counts.merge(word, 1, Integer::sum);
        return counts.size();
    }

    static long scan(long texts) {
        List<String> recent = new ArrayList<>();
        Map<String, Integer> counts = new HashMap<>();
        long sum = 0;
        for (long i = 0; i < texts; i++) {
            String text = text(i * 7919);
            if (recent.size() < KEPT) recent.add(text);
            else recent.set((int) (i % KEPT), text);
            sum += countWords(counts, text);
        }
        return sum + recent.size();
    }

    public static void main(String[] words) throws Exception {
        long texts = 1000 * Long.parseLong(words[0]);
        long[] sums = new long[2];
        Thread[] scanners = new Thread[2];
        for (int me = 0; me < 2; me++) {
            int at = me;
            scanners[me] = new Thread(() -> sums[at] = scan(texts), "scanner-" + me);
            scanners[me].start();
        }
        for (Thread scanner : scanners) scanner.join();
        System.out.println(sums[0] + sums[1]);
    }
}
