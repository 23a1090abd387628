# What is built for: this machine's processor, or with CROSS=aarch64-linux-gnu- another one, by the compiler of that name.
# Then libraries and objects lie in folders of its own, ARCH as Go calls it; what is embedded always does.
ifneq ($(CROSS),)
CC := $(CROSS)gcc
endif
ARCH := $(if $(filter aarch64%,$(shell $(CC) -dumpmachine)),arm64,amd64)
IN := $(if $(CROSS),$(ARCH)/)
STRIP := $(CROSS)strip
# The same bytes in whichever folder: what names a library is made of all that is in it, debuggers' paths too.
override CFLAGS += -ffile-prefix-map=$(abspath $(CURDIR)/..)=.
