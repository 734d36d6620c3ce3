// An HTTP server with faults that depend on its settings. Arguments: port, and for /bank whether the lock is held meanwhile.
package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// Customer is one of many that stay in memory.
type Customer struct {
	next *Customer
	name [4]*string
}

var (
	customers *Customer
	gate      sync.Mutex
	booked    int
)

//go:noinline
func askBank() {
	time.Sleep(time.Millisecond)
}

//go:noinline
func priceOrder(seed uint64) uint64 {
	for i := 0; i < 300000; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
	}
	return seed
}

//go:noinline
func listLines() int {
	total := 0
	for i := 0; i < 300; i++ {
		line := make([]*string, 16)
		text := fmt.Sprintf("line %d", i)
		line[0] = &text
		total += len(line)
	}
	return total
}

func remember(count int) {
	for i := 0; i < count; i++ {
		text := fmt.Sprintf("customer %d", i)
		customers = &Customer{next: customers}
		for at := range customers.name {
			customers.name[at] = &text
		}
	}
}

func main() {
	holds := len(os.Args) > 2 && os.Args[2] == "held"
	remember(300000)
	http.HandleFunc("/bank", func(answer http.ResponseWriter, _ *http.Request) {
		if !holds {
			askBank()
		}
		gate.Lock()
		if holds {
			askBank()
		}
		booked++
		gate.Unlock()
		fmt.Fprintln(answer, "booked")
	})
	http.HandleFunc("/price", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, priceOrder(7))
	})
	http.HandleFunc("/lines", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, listLines())
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
