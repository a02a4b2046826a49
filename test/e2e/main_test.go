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

// controlPlanes are the control planes of this package.
var controlPlanes *clusters

func TestMain(m *testing.M) {
	// Two tests need no cluster, or wait for the others.
	controlplane.RunTests(m, maxClusters+2, func() (func() error, error) {
		for _, program := range []string{"weir", "weir-provisioner"} {
			if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
				return nil, fmt.Errorf("%w: run make build first", err)
			}
		}
		dir, err := os.MkdirTemp("", "weir-e2e-")
		if err != nil {
			return nil, err
		}
		controlPlanes = newClusters(dir)
		return func() error { return errors.Join(controlPlanes.stop(), os.RemoveAll(dir)) }, nil
	})
}

// parallelTests are the tests that TestTheRolesAllowWhatIsUsed waits for.
var parallelTests sync.WaitGroup

// runParallel runs a test in parallel. All parallel tests register before the first one continues.
func runParallel(t *testing.T) {
	t.Helper()
	parallelTests.Add(1)
	t.Cleanup(parallelTests.Done)
	t.Parallel()
}
