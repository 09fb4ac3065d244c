package controlplane

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// port is a port of 127.0.0.1 that is held for the API server: the kernel gives it
// to no other process, even while the API server is stopped. A socket is bound to
// it and never listens, so that connections are refused while no API server runs.
// Both sockets must allow that the port is shared.
type port struct {
	number int
	socket int
}

// holdPort holds a free port.
func holdPort() (*port, error) {
	syscall.ForkLock.RLock() // a program that is started now must not inherit the socket
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	number, err := bindFreePort(socket)
	if err != nil {
		_ = syscall.Close(socket)
		return nil, err
	}
	return &port{number: number, socket: socket}, nil
}

// bindFreePort binds the socket to a port that the kernel chooses, and returns it.
func bindFreePort(socket int) (int, error) {
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, reusePort(), 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	inet4, ok := address.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("the address of the socket is a %T", address)
	}
	return inet4.Port, nil
}

// reusePort returns the socket option SO_REUSEPORT, which the package syscall does
// not have for all systems.
func reusePort() int {
	if runtime.GOOS == "linux" {
		return 0xf
	}
	return 0x200 // macOS, BSD
}

// release stops holding the port.
func (p *port) release() {
	_ = syscall.Close(p.socket)
}
