# A pool of workers that fetch pages, four milliseconds each, and count their links. Arguments: workers, pages.
import concurrent.futures
import re
import sys
import time

LINK = re.compile(r'href="([^"]+)"')


def fetch(page):
    time.sleep(0.004)
    return 'text <a href="%d.html">next</a> ' % page * 20


def links(page):
    return len(LINK.findall(fetch(page)))


workers, pages = int(sys.argv[1]), int(sys.argv[2])
with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
    print(sum(pool.map(links, range(pages))))
