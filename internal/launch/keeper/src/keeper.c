// hightide-keeper: takes what a program writes and keeps it. It copies its standard input, a pipe or the other end of the
// program's terminal, to its standard output, a file, and to its standard error, where the program's output was to go before; that may
// be closed. It outlives hightide, so that a program whose hightide is killed can still write. It ends when nobody can write to it any
// more. A place that takes nothing, as a full disk, is passed over: the program must not stand still for it. It uses no library: it must
// run wherever hightide does.

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/signal.h>

static long call(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return number;
}

static char buffer[64 << 10];

// Waits until a descriptor takes more, or gives more.
static void wait_for(int fd, short events)
{
	struct pollfd one = {fd, events, 0};
	call(__NR_poll, (long)&one, 1, -1, 0);
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

// The kernel begins here, with a stack as no caller would leave it.
__attribute__((force_align_arg_pointer)) void _start(void)
{
	const long mask_bytes = 8;
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
		put(1, n);
		shows = shows && put(2, n);
	}
	call(__NR_exit_group, 0, 0, 0, 0);
}
