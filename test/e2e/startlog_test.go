// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/controlplane"
)

// By default a start logs problems, that Weir starts, and which process leads. Details need a
// higher verbosity.
func TestStartLogIsShort(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web")
	l.service("web", l.node("n1", "10.0.0.1"))
	for verbosity, reported := range map[string]bool{"0": false, "1": true} {
		weir := l.controller("-v="+verbosity, "--leader-elect=false", "--metrics-secure")
		l.eventually("the start", func() error {
			_, err := get(weir.health, "/readyz")
			return err
		})
		l.becomes("web", "10.0.0.1")
		if reported {
			l.eventually("all parts", func() error {
				if out := weir.ReadOutput(); !strings.Contains(out, `"level":"DEBUG","msg":"Starting workers"`) || !strings.Contains(out, `"level":"DEBUG","msg":"starting server"`) {
					return errors.New(out)
				}
				return nil
			})
		}
		weir.Kill()
		out := weir.ReadOutput()
		for _, part := range []string{"EventSource", "workers", "starting server", "metrics server", "healthz check"} {
			if strings.Contains(out, part) && !reported {
				t.Errorf("an operator hears of %q:\n%s", part, out)
			}
		}
		if !strings.Contains(out, `"level":"INFO","msg":"weir starts"`) {
			t.Errorf("verbosity %s:\n%s", verbosity, out)
		}
	}
}

// A silent API server is named within about five seconds and does not block shutdown.
func TestASilentAPIServerIsNamed(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	l.must(err)
	t.Cleanup(func() { _ = silent.Close() })
	kubeconfig := filepath.Join(l.dir, "silent")
	l.must(controlplane.WriteKubeconfig(kubeconfig, &rest.Config{Host: "http://" + silent.Addr().String()}, ""))
	weir := l.controller("--kubeconfig", kubeconfig)
	l.eventually("a word", func() error {
		if out := weir.ReadOutput(); !strings.Contains(out, "the API server has not responded yet") || !strings.Contains(out, silent.Addr().String()) {
			return errors.New(out)
		}
		return nil
	})
	l.must(weir.Signal(syscall.SIGTERM))
	if err := weir.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, weir.ReadOutput())
	}
}
