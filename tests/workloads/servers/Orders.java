// An HTTP server with faults that depend on its settings. Arguments: port, threads, and for /bank whether the monitor is held
// meanwhile.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

public class Orders {
    static final List<byte[]> customers = new ArrayList<>();
    static final Object gate = new Object();
    static int booked;
    static volatile int sink;

    static void askBank() {
        try {
            Thread.sleep(2);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    static void bookAlone() {
        synchronized (gate) {
            askBank();
            booked++;
        }
    }

    static void book() {
        askBank();
        synchronized (gate) {
            booked++;
        }
    }

    static int listLines() {
        List<String> lines = new ArrayList<>();
        for (int line = 0; line < 2000; line++) {
            lines.add("line " + line);
        }
        return lines.size();
    }

    static void answer(HttpExchange exchange) throws IOException {
        byte[] text = "done\n".getBytes();
        exchange.sendResponseHeaders(200, text.length);
        exchange.getResponseBody().write(text);
        exchange.close();
    }

    public static void main(String[] words) throws IOException {
        boolean holds = words[2].equals("held");
        for (int customer = 0; customer < 20000; customer++) {
            customers.add(new byte[1000]);
        }
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 1024);
        server.createContext("/bank", exchange -> {
            if (holds) {
                bookAlone();
            } else {
                book();
            }
            answer(exchange);
        });
        server.createContext("/lines", exchange -> {
            sink = listLines();
            answer(exchange);
        });
        server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(words[1])));
        server.start();
    }
}
