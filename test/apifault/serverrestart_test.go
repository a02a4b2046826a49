// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/test/controlplane"
)

// serverProcess returns the process of the shared kube-apiserver and its command line.
func serverProcess(t *testing.T) (pid int, command []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, _ := os.ReadFile(file) // empty for an exited process
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
		if filepath.Base(args[0]) == "kube-apiserver" && bytes.Contains(status, fmt.Appendf(nil, "PPid:\t%d\n", os.Getpid())) {
			if pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file))); err != nil {
				t.Fatal(err)
			}
			return pid, args
		}
	}
	t.Fatal("the tests have no kube-apiserver")
	return 0, nil
}

// restartServer kills the kube-apiserver and restarts it after a while.
func (s *stage) restartServer(away time.Duration) {
	s.Helper()
	pid, command := serverProcess(s.T)
	s.proxy.RefuseConnections()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	s.waitFault(away)
	second := exec.Command(command[0], command[1:]...)
	if err := second.Start(); err != nil {
		s.Fatal(err)
	}
	// The control plane stops only the first process; stopServer stops the last one.
	go func() { _ = second.Wait() }()
	stopServer = func() { _ = second.Process.Kill() }
	controlplane.WaitUntil(s.T, func() string {
		if err := api.List(s.Context(), &v1alpha1.BackendPoolList{}); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := s.proxy.Restore(); err != nil {
		s.Fatal(err)
	}
}

// stopServer stops the kube-apiserver started by a test, or is nil.
var stopServer func()

// A member that was about to leave is retained when the kube-apiserver returns with newer state.
// The controller's old state does not remove it. The test runs alone because the server is shared.
func TestNoMemberIsLostWhenTheServerRestarts(t *testing.T) {
	for _, away := range []time.Duration{8 * time.Second, 40 * time.Second} {
		t.Run(away.String(), func(t *testing.T) {
			s := newStage(t)
			s.failWrite()
			began := time.Now()
			s.restartServer(away)
			s.moveEndpoints(1, 2, 3)
			t.Logf("in sync %s after the server was back", s.waitInSync(1, 2, 3))
			for _, p := range s.putsSince(began) {
				if !slices.Contains(p.holds, s.ip(2)) {
					t.Errorf("%v was written, without node 2", p)
				}
			}
			s.moveEndpoints(3)
			s.waitInSync(3)
		})
	}
}
