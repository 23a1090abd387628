"""A thread for each request, which waits for what never comes, and keeps its arrays.

truth: leak cause=thread
"""

import threading
import time

import numpy as np

never = threading.Event()


def handle(request):
    answer = request * 2  # LEAK
    never.wait()
    return answer


def main():
    for _request in range(250):
        rows = np.ones(40_000)  # LEAK
        threading.Thread(target=handle, args=(rows,), daemon=True).start()
        time.sleep(0.1)


main()
