/* since.h: from which glibc on a symbol has been there, for .symver: on arm64, which is younger, all are from 2.17 on. */
#ifndef HT_SINCE_H
#define HT_SINCE_H
#if defined(__x86_64__)
#define HT_SINCE(version) "GLIBC_" version
#else
#define HT_SINCE(version) "GLIBC_2.17"
#endif
#endif
