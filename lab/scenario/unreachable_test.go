// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"net"
	"reflect"
	"testing"
)

// A scripted refused connection has the kernel's error.
func TestRefusedDialHasKernelError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = net.Dial("tcp", listener.Addr().String())
	real, ok := errors.AsType[*net.OpError](err)
	if !ok {
		t.Fatalf("a dial says %v", err)
	}
	real.Addr = nil
	if got := connectionError(); !reflect.DeepEqual(got, error(real)) {
		t.Errorf("a script says %#v, a dial %#v", got, real)
	}
}
