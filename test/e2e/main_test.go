// SPDX-License-Identifier: Apache-2.0

// Package e2e_test runs the built program against real kube-apiservers with the shipped roles, and
// the ARM emulator over TCP.
package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"weir.dev/weir/test/controlplane"
)

// bin is the folder of the built programs.
var bin, _ = filepath.Abs("../../bin")

// planes are the control planes of this package.
var planes *clusters

func TestMain(m *testing.M) {
	// Two tests need no cluster, or wait for the others.
	controlplane.Beside(m, mostClusters+2, func() (func() error, error) {
		for _, program := range []string{"weir", "weir-provisioner"} {
			if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
				return nil, fmt.Errorf("%w: run make build first", err)
			}
		}
		dir, err := os.MkdirTemp("", "weir-e2e-")
		if err != nil {
			return nil, err
		}
		planes = newClusters(dir)
		return func() error { return errors.Join(planes.stop(), os.RemoveAll(dir)) }, nil
	})
}

// others are the tests that TestTheRolesAllowWhatIsUsed waits for.
var others sync.WaitGroup

// beside runs a test in parallel. All parallel tests register before the first one continues.
func beside(t *testing.T) {
	t.Helper()
	others.Add(1)
	t.Cleanup(others.Done)
	t.Parallel()
}
