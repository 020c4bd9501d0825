// db-scheduler: a job queue in one table, polled by several schedulers with SKIP LOCKED; one-time, repeated and recurring jobs.
import com.github.kagkarlsson.scheduler.*;
import com.github.kagkarlsson.scheduler.task.*;
import com.github.kagkarlsson.scheduler.task.helper.*;
import com.github.kagkarlsson.scheduler.task.schedule.*;
import java.sql.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import org.postgresql.ds.PGSimpleDataSource;

public class QuickStart {
    static final int JOBS = 200;

    public static void main(String[] args) throws Exception {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl(args[0]);
        try (Connection c = source.getConnection(); Statement s = c.createStatement()) {
            // The table as its documentation gives it.
            s.execute("""
                create table scheduled_tasks (
                  task_name text not null, task_instance text not null, task_data bytea, execution_time timestamp with time zone,
                  picked BOOLEAN not null, picked_by text, last_success timestamp with time zone, last_failure timestamp with time zone,
                  consecutive_failures INT, last_heartbeat timestamp with time zone, version BIGINT not null, priority SMALLINT,
                  PRIMARY KEY (task_name, task_instance));
                CREATE INDEX execution_time_idx ON scheduled_tasks (execution_time);
                CREATE INDEX last_heartbeat_idx ON scheduled_tasks (last_heartbeat);
                CREATE INDEX priority_execution_time_idx on scheduled_tasks (priority desc, execution_time asc);
                """);
        }
        Map<String, Integer> runs = new ConcurrentHashMap<>();
        CountDownLatch done = new CountDownLatch(JOBS), repeated = new CountDownLatch(3), failedOnce = new CountDownLatch(2);
        OneTimeTask<String> mail = Tasks.oneTime("mail", String.class).execute((instance, context) -> {
            runs.merge(instance.getId(), 1, Integer::sum);
            done.countDown();
        });
        OneTimeTask<Void> shaky = Tasks.oneTime("shaky").onFailure((failure, operations) -> operations.reschedule(failure, Instant.now())).execute((instance, context) -> {
            failedOnce.countDown();
            if (failedOnce.getCount() > 0) throw new IllegalStateException("the first time it fails");
        });
        RecurringTask<Void> tick = Tasks.recurring("tick", FixedDelay.ofMillis(50)).execute((instance, context) -> repeated.countDown());
        List<Scheduler> schedulers = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            SchedulerBuilder builder = Scheduler.create(source, mail, shaky).startTasks(tick).threads(4).pollingInterval(Duration.ofMillis(50)).schedulerName(new SchedulerName.Fixed("node " + i));
            schedulers.add((i == 0 ? builder.pollUsingFetchAndLockOnExecute(0, 2.0) : builder.pollUsingLockAndFetch(0.5, 2.0)).build());
        }
        SchedulerClient client = SchedulerClient.Builder.create(source, mail, shaky).build();
        for (int i = 0; i < JOBS; i++) client.scheduleIfNotExists(mail.instance("m" + i, "letter " + i), Instant.now());
        client.scheduleIfNotExists(shaky.instance("s"), Instant.now());
        for (Scheduler s : schedulers) s.start();
        if (!done.await(60, TimeUnit.SECONDS) || !repeated.await(60, TimeUnit.SECONDS) || !failedOnce.await(60, TimeUnit.SECONDS))
            throw new AssertionError("after a minute: " + runs.size() + " jobs of " + JOBS + ", " + repeated.getCount() + " ticks and " + failedOnce.getCount() + " repetitions to go");
        for (Scheduler s : schedulers) s.stop();
        if (runs.size() != JOBS || runs.values().stream().anyMatch(n -> n != 1)) throw new AssertionError("not once each: " + runs);
        try (Connection c = source.getConnection(); ResultSet rs = c.createStatement().executeQuery("SELECT count(*) FROM scheduled_tasks WHERE task_name = 'mail'")) {
            rs.next();
            if (rs.getInt(1) != 0) throw new AssertionError(rs.getInt(1) + " jobs are left");
        }
        System.out.println("all fine");
    }
}
