// Goroutines that wait for a mutex of Go's standard library, which computes under it.
package main

import (
	"fmt"
	"sync"
)

func work(seed uint64) uint64 {
	for i := uint64(0); i < 200000; i++ {
		seed = seed*6364136223846793005 + i
	}
	return seed
}

func main() {
	var lock sync.Mutex
	var all sync.WaitGroup
	sum, rounds := uint64(0), 0
	for t := 0; t < 4; t++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := uint64(0); i < 101; i++ {
				lock.Lock()
				sum += work(i)
				rounds++
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	fmt.Println(rounds, "rounds", sum != 0)
}
