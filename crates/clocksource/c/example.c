/* cc -I ../include example.c -L <target directory> -lclocksource -o example && ./example static:5ms */
#include "timeball_clock.h"

#include <stdio.h>

int main(int argc, char **argv) {
    char text[512];
    timeball_clock *clock = timeball_clock_open(argc > 1 ? argv[1] : "auto", text, sizeof text);
    if (clock == NULL) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    timeball_clock_describe(clock, text, sizeof text);
    printf("%s\n", text);

    uint64_t earliest, latest;
    if (timeball_clock_now(clock, &earliest, &latest) != 0) {
        printf("no bound that may be relied upon\n");
        timeball_clock_close(clock);
        return 2;
    }
    printf("error %llu ns\n", (unsigned long long)(latest - earliest) / 2);
    printf("before waiting: after(latest) = %d\n", timeball_clock_after(clock, latest));
    int waited = timeball_clock_wait_until_after(clock, latest);
    printf("waited: %d, after(latest) = %d\n", waited, timeball_clock_after(clock, latest));

    timeball_reading reading;
    timeball_clock_read(clock, &reading);
    printf("status %d, drift %u ppb\n", reading.status, reading.max_drift_ppb);
    timeball_clock_close(clock);
    return 0;
}
