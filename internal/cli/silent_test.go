// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// An API server that accepts connections but never responds is an error after a timeout.
func TestASilentAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClient(&rest.Config{Host: "http://silent", Dial: func(context.Context, string, string) (net.Conn, error) {
			conn, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }()
			return conn, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := ListPools(t.Context(), c, ""); err == nil || time.Since(began) > 2*discoveryTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// Only a user of the form of a ServiceAccount is one.
func TestAccounts(t *testing.T) {
	for user, want := range map[string]string{
		"system:serviceaccount:weir-system:weir": "weir-system/weir", "system:serviceaccount:weir": "/", "kubernetes-admin": "/", "a:b": "/", "": "/",
	} {
		if namespace, name := parseAccount(user); namespace+"/"+name != want {
			t.Errorf("%q: %s/%s, want %s", user, namespace, name, want)
		}
	}
}
