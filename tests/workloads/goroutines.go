// Goroutines that wait for each other. goroutines KIND ROUNDS: the kind says what limits.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

func spin(us int, x uint64) uint64 {
	x |= 1
	for i := 0; i < us*330; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func prepare(x uint64) uint64 { return spin(20, x) }

//go:noinline
func compress(x uint64) uint64 { return spin(60, x) }

//go:noinline
func shade(x uint64) uint64 { return spin(200, x) }

var mutex sync.Mutex
var sum uint64

//go:noinline
func update(x uint64) {
	mutex.Lock()
	sum += spin(60, x)
	mutex.Unlock()
}

var places chan struct{}

//go:noinline
func fetch() {
	places <- struct{}{}
	time.Sleep(3 * time.Millisecond)
	<-places
}

func several(count int, work func(int)) {
	var all sync.WaitGroup
	for k := 0; k < count; k++ {
		all.Add(1)
		go func(k int) {
			defer all.Done()
			work(k)
		}(k)
	}
	all.Wait()
}

func stage(in <-chan uint64, out chan<- uint64, work func(uint64) uint64) {
	for x := range in {
		out <- work(x)
	}
	close(out)
}

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	switch os.Args[1] {
	case "mutex":
		several(4, func(k int) {
			for i := 0; i < n; i++ {
				update(prepare(uint64(i)))
			}
		})
	case "places":
		places = make(chan struct{}, 4)
		several(24, func(k int) {
			for i := 0; i < n/100; i++ {
				fetch()
			}
		})
	case "stages":
		a, b, c := make(chan uint64, 16), make(chan uint64, 16), make(chan uint64, 16)
		go stage(a, b, compress)
		go stage(b, c, prepare)
		go func() {
			for i := 0; i < n; i++ {
				a <- prepare(uint64(i))
			}
			close(a)
		}()
		for x := range c {
			sum += x
		}
	case "tiles":
		several(8, func(k int) {
			for i := 0; i < n/4; i++ {
				shade(uint64(i))
			}
		})
	}
	fmt.Println("done", sum&1)
}
