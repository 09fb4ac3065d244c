package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreePorts returns free ports of 127.0.0.1. They are below the range from which
// the kernel chooses, so that no process gets one by chance before a server listens
// at it, or while that server is down.
func FreePorts(ctx context.Context, count int) ([]int, error) {
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
		defer func() { _ = listener.Close() }() // after all are found, so that they differ
		ports = append(ports, port)
	}
	return nil, errors.New("finding free ports: there are none")
}
