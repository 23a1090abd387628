"""Rows of text parsed into dicts, all kept: many small objects.

truth: leak cause=records
"""

import time

records = []


def parse(n):
    return {"id": n, "name": f"user {n}", "tags": [str(n), str(n + 1)], "score": n * 0.5}  # LEAK


def main():
    for n in range(350):
        for i in range(400):
            records.append(parse(n * 400 + i))  # LEAK
        time.sleep(0.018)


main()
