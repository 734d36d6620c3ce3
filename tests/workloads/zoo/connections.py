# Ten threads that ask a database and add up what they get; the pool of connections has so many of them.
# Arguments: connections, questions of each thread.
import queue
import sys
import threading
import time


class Pool:
    def __init__(self, size):
        self.free = queue.Queue()
        for number in range(size):
            self.free.put(number)

    def ask(self, question):
        connection = self.free.get()
        try:
            time.sleep(0.005)
            return question * 31 % 97
        finally:
            self.free.put(connection)


def client(pool, questions, sums, me):
    for question in range(questions):
        answer = pool.ask(question)
        sums[me] += sum(number % 7 for number in range(answer * 10))


def main():
    pool, questions = Pool(int(sys.argv[1])), int(sys.argv[2])
    sums = [0] * 10
    threads = [threading.Thread(target=client, args=(pool, questions, sums, me)) for me in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(sums))


main()
