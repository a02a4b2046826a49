// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"weir.dev/weir/lab/process"
)

// lab is the cluster, the Azure emulator and the controller, each in its own process.
type lab struct {
	opts Options
	dir  string      // logs, kubeconfig, azure.json and etcd's data
	fail func(error) // called when a process exits unexpectedly
	place

	kubelab, emulator, weir *process.Process
	provisioner             *process.Process // with a remote cluster only
	page                    *process.Process // nil unless Stay is set

	kubeconfig      string
	account         string // kubeconfig of the provisioner
	endpoint, admin string // of the emulator
	// ignoresNodes turns admin states off.
	ignoresNodes    bool
	metrics, health string // host:port of the controller
	operator        string // serves its Azure requests
}

// place is the initial environment of a lab.
type place struct {
	nodes        int
	resources    []object // in Azure
	latencyScale float64
	azureJSON    func(ignoresNodes bool) object
}

// program returns the path of a program next to the running one.
func (o Options) program(name, build string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(o.bin, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not there: run %s first", path, build)
	}
	return path, nil
}

// start starts a process of the lab.
func (l *lab) start(ctx context.Context, name, program string, args ...string) (*process.Process, error) {
	return process.StartCommand(ctx, process.Command{Dir: l.dir, Name: name, Path: program, Args: args, OnExit: l.fail})
}

// startKubelab starts the cluster and waits until it is ready.
func (l *lab) startKubelab(ctx context.Context) error {
	if err := l.beginKubelab(ctx); err != nil {
		return err
	}
	_, err := l.kubelab.FirstLine(ctx)
	return err
}

func (l *lab) beginKubelab(ctx context.Context) error {
	program, err := l.opts.program("kubelab", "make kubelab")
	if err != nil {
		return err
	}
	l.kubeconfig = filepath.Join(l.dir, "kubeconfig")
	l.kubelab, err = l.start(ctx, "kubelab", program, "up", "--exit-with-stdin",
		"--nodes", strconv.Itoa(l.nodes), "--dir", filepath.Join(l.dir, "cluster"), "--kubeconfig", l.kubeconfig)
	return err
}

// startEmulator starts an Azure emulator with the resources of the place.
func (l *lab) startEmulator(ctx context.Context) error {
	seed := filepath.Join(l.dir, "azure-resources.json")
	if err := writeJSON(seed, l.resources); err != nil {
		return err
	}
	var err error
	l.emulator, err = l.start(ctx, "emulator", l.opts.weirlab, "emulator", "--exit-with-stdin",
		"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--output", "json", "--seed-file", seed,
		"--seed", strconv.FormatUint(l.opts.Seed, 10), "--latency", latency,
		"--latency-scale", strconv.FormatFloat(l.latencyScale, 'g', -1, 64))
	if err != nil {
		return err
	}
	line, err := l.emulator.FirstLine(ctx)
	if err != nil {
		return err
	}
	var at struct{ Endpoint, Admin string }
	if err := json.Unmarshal([]byte(line), &at); err != nil {
		return fmt.Errorf("the emulator announced %q: %w", line, err)
	}
	l.endpoint, l.admin = at.Endpoint, at.Admin
	return nil
}

// furnish installs Weir's CRDs and namespace and returns a client.
func (l *lab) furnish(ctx context.Context) (*rest.Config, *cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1 // one user on one machine
	k8s, err := newCluster(config)
	if err != nil {
		return nil, nil, err
	}
	return config, k8s, errors.Join(k8s.installCRDs(ctx), k8s.createNamespace(ctx))
}

// startWeir starts or restarts the controller and waits until it has read the cluster. It runs
// without election: after kill -9 a lease would have to expire first.
func (l *lab) startWeir(ctx context.Context) error {
	program, err := l.opts.program("weir", "make build")
	if err != nil {
		return err
	}
	configFile := filepath.Join(l.dir, "azure.json")
	if err := writeJSON(configFile, l.azureJSON(l.ignoresNodes)); err != nil {
		return err
	}
	if l.metrics == "" {
		free, err := process.FreeAddresses(ctx, 3)
		if err != nil {
			return err
		}
		l.metrics, l.health, l.operator = free[0], free[1], free[2]
	}
	args := []string{
		"controller", "--kubeconfig", l.kubeconfig,
		"--config", configFile, "--azure-endpoint", l.endpoint, "--leader-elect=false",
		"--metrics-bind-address", l.metrics, "--operator-bind-address", l.operator, "--health-probe-bind-address", l.health, "--log-format", "text", "-v", "1",
	}
	l.weir, err = l.start(ctx, "weir", program, args...)
	if err != nil {
		return err
	}
	return l.weirReady(ctx)
}

const readyTimeout = 5 * time.Minute

var errNotReady = errors.New("the controller is not ready")

func (l *lab) weirReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%w after %s; its output is in %s", errNotReady, readyTimeout, l.weir.Log))
	defer cancel()
	return until(ctx, 20*time.Millisecond, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.health+"/readyz", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet; the deadline ends this
		}
		_ = resp.Body.Close() // only the status matters
		return resp.StatusCode == http.StatusOK, nil
	})
}

// blame reports that the emulator is unreachable, unless its process exited, which is reported
// elsewhere.
func (l *lab) blame(ctx context.Context, err error) {
	select {
	case <-l.emulator.Done():
	case <-ctx.Done():
	case <-time.After(blameAfter):
		l.fail(err)
	}
}

// blameAfter is how long a process exit may take to be noticed after a broken connection.
const blameAfter = time.Second

// stop ends all processes, the controller first, so that it never sees a missing cluster.
func (l *lab) stop() {
	process.StopAll(l.weir, l.provisioner, l.page)
	process.StopAll(l.kubelab, l.emulator)
}

func writeJSON(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}
