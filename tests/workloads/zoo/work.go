// Goroutines: one hot mutex (mutex), two hundred that share nothing (tiles), three stages of which the middle one limits
// (stages). Arguments: which, rounds.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var lock sync.Mutex
var cache = map[uint64]int{}

//go:noinline
func parseRequest(state uint64) uint64 {
	for i := 0; i < 40000; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

//go:noinline
func render(state uint64) uint64 {
	for i := 0; i < 120000; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

//go:noinline
func updateCache(state uint64) {
	lock.Lock()
	cache[render(state)%256]++
	lock.Unlock()
}

//go:noinline
func tile(state uint64) uint64 {
	for i := 0; i < 1000000; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

//go:noinline
func stageParse(state uint64) uint64 {
	for i := 0; i < 80000; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

//go:noinline
func stageSlow(state uint64) uint64 {
	for i := 0; i < 240000; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

//go:noinline
func stageWrite(state uint64) uint64 {
	for i := 0; i < 80000; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return state
}

func mutex(rounds int) uint64 {
	var all sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		all.Add(1)
		go func(worker int) {
			defer all.Done()
			for i := 0; i < rounds; i++ {
				updateCache(parseRequest(uint64(worker*rounds + i + 1)))
			}
		}(worker)
	}
	all.Wait()
	return uint64(len(cache))
}

func tiles(rounds int) uint64 {
	var all sync.WaitGroup
	results := make([]uint64, 200)
	for i := range results {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for k := 0; k < rounds; k++ {
				results[i] ^= tile(uint64(i + k + 1))
			}
		}(i)
	}
	all.Wait()
	sum := uint64(0)
	for _, result := range results {
		sum ^= result
	}
	return sum
}

func stages(rounds int) uint64 {
	parsed, done := make(chan uint64, 16), make(chan uint64, 16)
	go func() {
		for i := 0; i < rounds; i++ {
			parsed <- stageParse(uint64(i + 1))
		}
		close(parsed)
	}()
	go func() {
		for item := range parsed {
			done <- stageSlow(item)
		}
		close(done)
	}()
	sum := uint64(0)
	for item := range done {
		sum ^= stageWrite(item)
	}
	return sum
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[2])
	ways := map[string]func(int) uint64{"mutex": mutex, "tiles": tiles, "stages": stages}
	fmt.Println(ways[os.Args[1]](rounds))
}
