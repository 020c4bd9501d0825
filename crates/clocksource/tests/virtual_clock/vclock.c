/* A kernel clock of one's own, for tests: preloaded into a time daemon and into the process that watches it.
 *
 * REALTIME, MONOTONIC and BOOTTIME are computed from MONOTONIC_RAW, which nobody touches and which is true time for the test. They are steered
 * and stepped by the calls with which a daemon steers and steps the kernel's; the real clock is never touched. All processes share one file
 * ($VCLOCK_DIR/state).
 *
 * Two slots and a generation, as in the library's own cell: a writer that is killed in the middle leaves the old state in force. Writers
 * exclude each other by a lock on the file, which dies with them.
 *
 * Every step is told to those who asked the kernel for that (timerfd with TFD_TIMER_CANCEL_ON_SET): each has a FIFO in $VCLOCK_DIR.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define FREQ_MAX (500LL << 16)

struct state {
    int64_t raw, mono, ahead;        /* at the last change of rate; ahead = realtime - monotonic */
    int64_t freq, tick, drift_ppb;   /* steering, and the oscillator's own error */
    int64_t status, maxerror, tai;   /* what a daemon told; maxerror as of maxerror_raw */
    int64_t esterror, constant, maxerror_raw;
};

struct file {
    _Atomic uint64_t generation;
    struct state slot[2];
};

static struct file *shared;
static int lock_fd = -1;
static char directory[200];

static void die(const char *what) {
    /* Without the file the real clock would be in reach. */
    fprintf(stderr, "vclock: %s: %s\n", what, strerror(errno));
    _exit(97);
}

static int64_t raw_now(void) {
    struct timespec t;
    if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &t) != 0) die("clock_gettime");
    return t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t mono_at(const struct state *s, int64_t raw) {
    double rate = (double)s->tick / 10000.0 + (double)s->freq / 65536e6;
    double passed = (double)(raw - s->raw);
    return s->mono + (raw - s->raw) + (int64_t)(passed * (rate * (1.0 + (double)s->drift_ppb / 1e9) - 1.0));
}

__attribute__((constructor)) static void attach(void) {
    const char *where = getenv("VCLOCK_DIR");
    char path[256];
    if (!where || strlen(where) >= sizeof directory) die("VCLOCK_DIR");
    strcpy(directory, where);
    snprintf(path, sizeof path, "%s/state", directory);
    lock_fd = open(path, O_RDWR | O_CLOEXEC);
    if (lock_fd < 0) die(path);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, lock_fd, 0);
    if (shared == MAP_FAILED) die("mmap");
}

static struct state load(void) {
    if (!shared) attach();
    for (;;) {
        uint64_t generation = atomic_load(&shared->generation);
        struct state s = shared->slot[generation & 1];
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load(&shared->generation) == generation) return s;
    }
}

static struct state begin(void) {
    struct state s;
    /* A lock of its own for each change: children share the descriptor. */
    while (flock(lock_fd, LOCK_EX) != 0)
        if (errno != EINTR) die("flock");
    s = load();
    int64_t raw = raw_now();
    s.mono = mono_at(&s, raw);
    s.raw = raw;
    return s;
}

static void commit(const struct state *s) {
    uint64_t next = atomic_load(&shared->generation) + 1;
    shared->slot[next & 1] = *s;
    atomic_store(&shared->generation, next);
    flock(lock_fd, LOCK_UN);
}

static void tell_of_step(void) {
    char path[512];
    DIR *all = opendir(directory);
    struct dirent *entry;
    if (!all) return;
    while ((entry = readdir(all))) {
        if (strncmp(entry->d_name, "told.", 5) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        if (write(fd, "x", 1) < 0) { /* it is told already */ }
        close(fd);
    }
    closedir(all);
}

/* As the kernel does when its clock is set. */
static void forget_synchronisation(struct state *s) {
    s->status |= STA_UNSYNC;
    s->maxerror = 16000000;
    s->maxerror_raw = s->raw;
}

static void set_ahead(int64_t ahead, int relative) {
    struct state s = begin();
    s.ahead = relative ? s.ahead + ahead : ahead - s.mono;
    forget_synchronisation(&s);
    commit(&s);
    tell_of_step();
}

/* For the test itself. */
void vclock_step(int64_t by_ns) { set_ahead(by_ns, 1); }
void vclock_drift(int64_t ppb) {
    struct state s = begin();
    s.drift_ppb = ppb;
    commit(&s);
}

static struct timespec spec(int64_t ns) {
    struct timespec t = {ns / SECOND, ns % SECOND};
    return t;
}

int clock_gettime(clockid_t id, struct timespec *t) {
    struct state s;
    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        s = load();
        *t = spec(mono_at(&s, raw_now()) + s.ahead);
        return 0;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        s = load();
        *t = spec(mono_at(&s, raw_now()));
        return 0;
    default:
        return syscall(SYS_clock_gettime, id, t);
    }
}

int gettimeofday(struct timeval *tv, void *zone) {
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    if (tv) {
        tv->tv_sec = t.tv_sec;
        tv->tv_usec = t.tv_nsec / 1000;
    }
    return 0;
}

time_t time(time_t *out) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}

int clock_settime(clockid_t id, const struct timespec *t) {
    if (id != CLOCK_REALTIME) {
        errno = EINVAL;
        return -1;
    }
    set_ahead(t->tv_sec * SECOND + t->tv_nsec, 0);
    return 0;
}

int settimeofday(const struct timeval *tv, const struct timezone *zone) {
    (void)zone;
    if (tv) set_ahead(tv->tv_sec * SECOND + (int64_t)tv->tv_usec * 1000, 0);
    return 0;
}

int adjtimex(struct timex *t) {
    if (t->modes == 0x8001 || t->modes == 0xa001) { /* adjtime(3): chronyd only ends one that goes on */
        t->offset = 0;
        return TIME_OK;
    }
    struct state s = t->modes ? begin() : load();
    int stepped = 0;
    if (t->modes & ADJ_FREQUENCY) {
        s.freq = t->freq > FREQ_MAX ? FREQ_MAX : t->freq < -FREQ_MAX ? -FREQ_MAX : t->freq;
    }
    if (t->modes & ADJ_TICK) s.tick = t->tick;
    if (t->modes & ADJ_STATUS) s.status = t->status & ~(STA_PPSSIGNAL | STA_CLOCKERR);
    if (t->modes & ADJ_MAXERROR) {
        s.maxerror = t->maxerror;
        s.maxerror_raw = s.raw;
    }
    if (t->modes & ADJ_ESTERROR) s.esterror = t->esterror;
    if (t->modes & ADJ_TIMECONST) s.constant = t->constant;
    if (t->modes & ADJ_TAI) s.tai = t->constant;
    if (t->modes & ADJ_SETOFFSET) {
        int64_t unit = t->modes & ADJ_NANO ? 1 : 1000;
        int64_t by = t->time.tv_sec * SECOND + t->time.tv_usec * unit;
        s.ahead += by;
        stepped = by != 0;
        forget_synchronisation(&s);
    }
    if (t->modes) commit(&s);
    if (stepped) tell_of_step();
    int64_t raw = raw_now(), real = mono_at(&s, raw) + s.ahead;
    t->freq = s.freq;
    t->tick = s.tick;
    t->status = s.status;
    /* 500 ppm, as the kernel counts. */
    t->maxerror = s.maxerror + (raw - s.maxerror_raw) / 2000000;
    if (t->maxerror > 16000000) {
        t->maxerror = 16000000;
        t->status |= STA_UNSYNC;
    }
    t->esterror = s.esterror;
    t->constant = s.constant;
    t->tai = s.tai;
    t->offset = 0;
    t->precision = 1;
    t->tolerance = FREQ_MAX;
    t->time.tv_sec = real / SECOND;
    t->time.tv_usec = real % SECOND / 1000;
    return t->status & STA_UNSYNC ? TIME_ERROR : TIME_OK;
}

int ntp_adjtime(struct timex *t) { return adjtimex(t); }
int clock_adjtime(clockid_t id, struct timex *t) {
    if (id == CLOCK_REALTIME) return adjtimex(t);
    errno = EINVAL;
    return -1;
}

/* The kernel would stamp packets by its own clock. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len) {
    if (level == SOL_SOCKET
        && (name == SO_TIMESTAMP || name == SO_TIMESTAMPNS || name == SO_TIMESTAMPING || name == SO_SELECT_ERR_QUEUE)) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return syscall(SYS_setsockopt, fd, level, name, value, len);
}

int timerfd_create(int clock, int flags) {
    static _Atomic int serial;
    char path[512];
    if (clock != CLOCK_REALTIME) return syscall(SYS_timerfd_create, clock, flags);
    snprintf(path, sizeof path, "%s/told.%d.%d", directory, (int)getpid(), atomic_fetch_add(&serial, 1));
    if (mkfifo(path, 0600) != 0) return -1;
    /* For both ways: without a writer it would look closed. */
    return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) return 0;
    return syscall(SYS_timerfd_settime, fd, flags, new, old);
}
