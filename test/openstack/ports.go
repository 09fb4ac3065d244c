package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// freePorts returns ports of 127.0.0.1 that are free. They are below those that
// the kernel gives out by itself, so that nobody has got one by chance before it
// is used, or while a server is down.
func freePorts(ctx context.Context, count int) ([]int, error) {
	const first, last, attempts = 20000, 32000, 1000
	var ports []int
	for range attempts {
		if len(ports) == count {
			return ports, nil
		}
		port := first + rand.IntN(last-first)
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer func() { _ = listener.Close() }() // not before all are found: they are different ones
		ports = append(ports, port)
	}
	return nil, errors.New("finding free ports: there are none")
}
