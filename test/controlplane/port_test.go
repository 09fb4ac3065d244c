package controlplane

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

func TestHoldPort(t *testing.T) {
	held, err := holdPort()
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(held.number)
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting while it is held: error is %v, want a refused connection", err)
	}
	if listener, err := net.Listen("tcp", address); err == nil {
		_ = listener.Close()
		t.Error("another socket could listen at a port that is held")
	}
	held.release()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Errorf("listening at a port that was released: %v", err)
	} else {
		_ = listener.Close()
	}
}
