// hightide-keeper: takes what a program writes and keeps it. It copies its standard input, a pipe or the other end of the
// program's terminal, to its standard output, a file. It copies it, too, to its standard error, where the program's output was to go before. That may
// be closed. It outlives hightide, so that a program whose hightide is killed can still write. It ends when nobody can write to it any
// more. A place that takes nothing, as a full disk, is passed over: the program must not stand still for it. It uses no library: it must
// run wherever hightide does.
//
// With a number, of bytes, it keeps no more than about that: the beginning and the end, half each. What is between becomes a hole of the
// file, so that every byte stays where it is for who reads along. A line before the hole says how much was left out.

#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "kernel.h"

static char buffer[64 << 10];

// Waits until a descriptor takes more, or gives more.
static void wait_for(int fd, short events)
{
	struct pollfd one = {fd, events, 0};
	call5(__NR_ppoll, (long)&one, 1, 0, 0, 0);
}

// Writes all of it; 0 where the place takes nothing.
static int put(int fd, long size)
{
	for (long done = 0; done < size;) {
		long n = call(__NR_write, fd, (long)buffer + done, size - done, 0);
		if (n == -EAGAIN)
			wait_for(fd, POLLOUT);
		else if (n < 0 && n != -EINTR)
			return 0;
		else if (n > 0)
			done += n;
	}
	return 1;
}

enum { PAGE = 4096, PUNCH = 3, END = 2 }; // FALLOC_FL_PUNCH_HOLE with FALLOC_FL_KEEP_SIZE, SEEK_END

static long limit, left_out_to, notice_file = -1;
static int full; // a file system without holes: nothing more is kept

static long text(char *to, const char *from)
{
	long n = 0;
	while ((to[n] = from[n]))
		n++;
	return n;
}

// Says before the hole how much it is. A terminal's colours end there, as those that follow would begin anywhere.
static void say(long hole, long to)
{
	static char line[96], digits[24];
	long n = text(line, "\n\x1b[m[hightide: "), at = sizeof digits - 1;
	const long taken = 64; // by this line
	for (long left = to - hole + taken; at > 0 && (left || at == sizeof digits - 1); left /= 10)
		digits[--at] = (char)('0' + left % 10);
	n += text(line + n, digits + at);
	n += text(line + n, " bytes are left out here]");
	while (n < taken - 1)
		line[n++] = ' ';
	line[n++] = '\n';
	call(__NR_pwrite64, notice_file, (long)line, n, hole - taken);
}

// Makes a hole of what is neither the beginning nor the end.
static void leave_out(void)
{
	const long hole = (limit / 2 + PAGE - 1) / PAGE * PAGE, step = limit / 16 + PAGE;
	const long size = call(__NR_lseek, 1, 0, END, 0), to = (size - limit / 2) / PAGE * PAGE;
	if (size <= limit || to < left_out_to + step || to <= hole)
		return;
	long from = left_out_to > hole ? left_out_to : hole;
	if (notice_file < 0) // the one that there is appends, whatever the place
		notice_file = call(__NR_openat, AT_FDCWD, (long)"/proc/self/fd/1", O_WRONLY, 0);
	if (notice_file < 0 || call(__NR_fallocate, 1, PUNCH, from, to - from) < 0) {
		full = 1;
		long n = text(buffer, "\n\x1b[m[hightide: what follows is left out here: these files cannot have holes]\n");
		put(1, n);
		return;
	}
	left_out_to = to;
	say(hole, to);
}

START(run)

__attribute__((used)) static void run(long *stack)
{
	const long mask_bytes = 8;
	if (stack[0] > 1)
		for (const char *c = (const char *)stack[2]; *c >= '0' && *c <= '9'; c++)
			limit = 10 * limit + (*c - '0');
	unsigned long all = ~0UL;
	call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, mask_bytes);
	call(__NR_prctl, PR_SET_NAME, (long)"hightide-keeper", 0, 0);
	int shows = 1;
	for (;;) {
		long n = call(__NR_read, 0, (long)buffer, sizeof buffer, 0);
		if (n == -EAGAIN)
			wait_for(0, POLLIN);
		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0) // EIO: the last end of a terminal was closed
			break;
		shows = shows && put(2, n);
		if (!full)
			put(1, n);
		if (limit && !full)
			leave_out();
	}
	call(__NR_exit_group, 0, 0, 0, 0);
}
