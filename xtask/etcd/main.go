// Puts to a cluster of etcd from many clients for a while: for `cargo x bench cluster`. Prints one JSON object.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func main() {
	endpoints := flag.String("endpoints", "", "comma-separated")
	clients := flag.Int("clients", 1, "connections, each with one put at a time")
	seconds := flag.Int("seconds", 10, "how long")
	keys := flag.Int("keys", 10000, "keys, chosen at random")
	flag.Parse()
	value := strings.Repeat("v", 100)
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	latencies := make([][]time.Duration, *clients)
	failures := make([]int, *clients)
	var all sync.WaitGroup
	for c := range *clients {
		// One node each, as a SQL client has: a balancing client would spread what is not spread there.
		one := strings.Split(*endpoints, ",")
		client, err := clientv3.New(clientv3.Config{Endpoints: one[:1], DialTimeout: 5 * time.Second})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			chance := rand.New(rand.NewSource(int64(c)))
			for time.Now().Before(end) {
				began := time.Now()
				if _, err := client.Put(context.Background(), fmt.Sprintf("key%08d", chance.Intn(*keys)), value); err != nil {
					failures[c]++
					continue
				}
				latencies[c] = append(latencies[c], time.Since(began))
			}
		}()
	}
	all.Wait()
	var each []time.Duration
	failed := 0
	for c := range latencies {
		each = append(each, latencies[c]...)
		failed += failures[c]
	}
	sort.Slice(each, func(i, j int) bool { return each[i] < each[j] })
	at := func(part float64) float64 {
		if len(each) == 0 {
			return 0
		}
		return float64(each[int(part*float64(len(each)-1))].Microseconds()) / 1000
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"per_second": float64(len(each)) / float64(*seconds), "failed": failed, "p50_ms": at(0.5), "p99_ms": at(0.99),
	})
}
