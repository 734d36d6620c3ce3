// As soak.c: goroutines that grow their stacks, a channel, garbage, and results compared.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

//go:noinline
func deep(depth int, seed uint64) uint64 {
	var frame [128]uint64
	frame[depth%128] = seed
	if depth == 0 {
		return frame[0]
	}
	return deep(depth-1, seed*3+uint64(depth)) ^ frame[depth%128]
}

//go:noinline
func whole() uint64 {
	sum := sha256.Sum256([]byte("start"))
	for i := 0; i < 200; i++ {
		garbage := make([]byte, 512+i)
		copy(garbage, sum[:])
		sum = sha256.Sum256(garbage)
	}
	return deep(500, uint64(sum[0])<<8|uint64(sum[31]))
}

func main() {
	expected := whole()
	var stop atomic.Bool
	var rounds, wrong atomic.Int64
	results := make(chan uint64)
	done := make(chan bool)
	for n := 0; n < 4; n++ {
		go func() {
			for !stop.Load() {
				// A new goroutine has a small stack, which has to grow in there.
				one := make(chan uint64)
				go func() { one <- whole() }()
				results <- <-one
			}
			done <- true
		}()
	}
	go func() {
		for result := range results {
			rounds.Add(1)
			if result != expected {
				wrong.Add(1)
			}
		}
		done <- true
	}()
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	stop.Store(true)
	for n := 0; n < 4; n++ {
		<-done
	}
	close(results)
	<-done
	fmt.Printf("%d rounds, %d wrong\n", rounds.Load(), wrong.Load())
	if wrong.Load() > 0 || rounds.Load() == 0 {
		os.Exit(1)
	}
}
