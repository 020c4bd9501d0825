/* timeball_clock: a bounded clock.  now() -> [earliest, latest], and true time lies inside.
 *
 *     char error[256];
 *     timeball_clock *clock = timeball_clock_open("auto", error, sizeof error);
 *     uint64_t earliest, latest;
 *     if (timeball_clock_now(clock, &earliest, &latest) == 0) ...
 *
 * Times are nanoseconds since 1970-01-01 UTC.  All functions but open and close may be called from any thread at once.
 * Reading costs about as much as clock_gettime; a thread of the library asks the time daemon meanwhile.
 */
#ifndef TIMEBALL_CLOCK_H
#define TIMEBALL_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct timeball_clock timeball_clock;

/* What the source says of itself. */
enum {
    TIMEBALL_UNKNOWN = 0,      /* no bound may be trusted */
    TIMEBALL_SYNCHRONIZED = 1, /* it follows a reference; the bound is measured */
    TIMEBALL_FREE_RUNNING = 2, /* the reference was lost; the bound grows */
    TIMEBALL_DISRUPTED = 3     /* the clock or the machine was disturbed; no bound may be trusted */
};

/* Results below zero. */
enum {
    TIMEBALL_INVALID = -1,  /* a null pointer */
    TIMEBALL_UNTRUSTED = -2 /* there is no bound that may be relied upon now */
};

typedef struct {
    uint64_t earliest_ns;   /* true time is not before this ... */
    uint64_t latest_ns;     /* ... and not after this */
    uint64_t as_of_ns;      /* monotonic: when the source's statistics were taken */
    uint64_t void_after_ns; /* monotonic: when they must not be used any more */
    uint64_t now_ns;        /* monotonic: this reading */
    uint32_t max_drift_ppb; /* how fast the bound opens on either side, parts per billion */
    int32_t status;         /* TIMEBALL_UNKNOWN ... TIMEBALL_DISRUPTED */
} timeball_reading;

/* Opens a source: "auto" (also for NULL), "chrony", "clockbound", "ptp", "kernel", "ntp:a,b,c", "static:5ms", "same-host".
 * NULL on failure, with a text in `error` (which may be NULL).  A source that is not synchronised yet opens. */
timeball_clock *timeball_clock_open(const char *source, char *error, size_t error_len);

/* Ends the clock and its thread.  NULL is allowed. */
void timeball_clock_close(timeball_clock *clock);

/* [earliest, latest].  0, or a result below zero, which leaves both unchanged. */
int timeball_clock_now(const timeball_clock *clock, uint64_t *earliest_ns, uint64_t *latest_ns);

/* Everything that is known.  0; TIMEBALL_UNTRUSTED, with `reading` filled, if it may not be relied upon. */
int timeball_clock_read(const timeball_clock *clock, timeball_reading *reading);

/* 1 if the time is certainly past, 0 if not, or a result below zero. */
int timeball_clock_after(const timeball_clock *clock, uint64_t unix_ns);

/* 1 if the time is certainly still to come, 0 if not, or a result below zero. */
int timeball_clock_before(const timeball_clock *clock, uint64_t unix_ns);

/* Blocks until the time is certainly past.  0, or a result below zero as soon as the bound is lost. */
int timeball_clock_wait_until_after(const timeball_clock *clock, uint64_t unix_ns);

/* The source in use and what it follows, for people; cut to fit.  Returns the length of the whole text. */
size_t timeball_clock_describe(const timeball_clock *clock, char *buffer, size_t len);

#ifdef __cplusplus
}
#endif

#endif
