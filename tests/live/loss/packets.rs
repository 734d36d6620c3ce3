//! Packets over the loopback device that longpole stops following, to keep its goal.

use longpole_tests::{Recorded, skip_unless_built, workload};

/// A process that is not recorded sends packets for three seconds as fast as it can, and no thread waits for them.
/// longpole then stops following packets. After that, threads of the program wake each other by packets.
const SOURCE: &str = r#"
    #include <arpa/inet.h>
    #include <pthread.h>
    #include <signal.h>
    #include <sys/wait.h>
    #include <time.h>
    #include <unistd.h>
    #define MESSAGES 300
    static int receiver;
    static struct sockaddr_in bound(int *from) {
        *from = socket(AF_INET, SOCK_DGRAM, 0);
        struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof here;
        if (bind(*from, (void *)&here, size) || getsockname(*from, (void *)&here, &size)) _exit(3);
        return here;
    }
    static void *receive(void *unused) {
        char byte;
        for (int i = 0; i < MESSAGES; i++) recv(receiver, &byte, 1, 0);
        return unused;
    }
    static double now(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec + time.tv_nsec / 1e9;
    }
    int main(void) {
        int nobody, out = socket(AF_INET, SOCK_DGRAM, 0);
        struct sockaddr_in to_nobody = bound(&nobody), here = bound(&receiver);
        pid_t flood = fork();
        if (flood == 0) {
            for (double begin = now(); now() - begin < 3.0;)
                for (int i = 0; i < 100; i++) sendto(out, "x", 1, 0, (void *)&to_nobody, sizeof to_nobody);
            _exit(0);
        }
        waitpid(flood, 0, 0);
        pthread_t thread;
        pthread_create(&thread, 0, receive, 0);
        for (int i = 0; i < MESSAGES; i++) {
            struct timespec nap = { 0, 3000000 };
            nanosleep(&nap, 0);
            sendto(out, "x", 1, 0, (void *)&here, sizeof here);
        }
        return pthread_join(thread, 0);
    }"#;

/// Wake-ups by packets that longpole does not follow count as the network's. A note must say so.
#[test]
fn wake_ups_by_packets_that_were_not_followed_are_a_note() {
    let program = skip_unless_built!(workload::compile_text("packets", "cc", &["-pthread"], SOURCE));
    let recorded = Recorded::good(&["--no-children", "--interpose", "never"], &program, &[]);
    let report = recorded.report("1");
    let told = report.findings("packets_not_followed");
    let [text] = &told[..] else { panic!("{}", report.0) };
    let wakings: u32 = text.split_whitespace().next().and_then(|count| count.parse().ok()).expect("a count");
    assert!((1..300).contains(&wakings), "{text}");
}
