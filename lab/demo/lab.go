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
	opts   Options
	dir    string      // logs, kubeconfig, azure.json and etcd's data
	onExit func(error) // called when a process exits unexpectedly
	// onLeaseLoss is called when the controller has lost its Lease, before it is started again.
	onLeaseLoss func()
	place

	controlPlane, emulator *process.Process
	controller             controllerRuns
	provisioner            *process.Process // with a remote cluster only
	page                   *process.Process // nil unless Stay is set

	kubeconfig      string
	account         string // kubeconfig of the provisioner
	endpoint, admin string // of the emulator
	// noAdminStates turns admin states off.
	noAdminStates bool
	// gatewayAPI is set if the cluster has Gateway API.
	gatewayAPI      bool
	metrics, health string // host:port of the controller
	debugEndpoint   string // serves its Azure requests
}

// place is the initial environment of a lab.
type place struct {
	nodes        int
	resources    []object // in Azure
	latencyScale float64
	azureJSON    func(ignoresNodes bool) object
}

// programPath returns the path of a program next to the running one.
func (o Options) programPath(name, build string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(o.programFolder, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not there: run %s first", path, build)
	}
	return path, nil
}

func (l *lab) startProcess(ctx context.Context, name, program string, args ...string) (*process.Process, error) {
	return process.StartCommand(ctx, process.Command{Dir: l.dir, Name: name, Path: program, Args: args, OnExit: l.onExit})
}

// startControlPlane starts the cluster and waits until it is ready.
func (l *lab) startControlPlane(ctx context.Context) error {
	if err := l.launchControlPlane(ctx); err != nil {
		return err
	}
	_, err := l.controlPlane.FirstLine(ctx)
	return err
}

func (l *lab) launchControlPlane(ctx context.Context) error {
	program, err := l.opts.programPath("kubelab", "make kubelab")
	if err != nil {
		return err
	}
	l.kubeconfig = filepath.Join(l.dir, "kubeconfig")
	l.controlPlane, err = l.startProcess(ctx, "kubelab", program, "up", "--exit-with-stdin",
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
	l.emulator, err = l.startProcess(ctx, "emulator", l.opts.emulatorPath, "emulator", "--exit-with-stdin",
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

// installBase installs Weir's CRDs and the namespaces and returns a client.
func (l *lab) installBase(ctx context.Context) (*rest.Config, *cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1 // one user on one machine
	k8s, err := newCluster(config)
	if err != nil {
		return nil, nil, err
	}
	return config, k8s, errors.Join(k8s.installCRDs(ctx), k8s.createNamespaces(ctx))
}

// The Lease of the controller: after kill -9 the next process leads when it expires. A shorter one would end
// the controller on a busy machine.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 6 * time.Second
	retryPeriod   = time.Second
)

// prepareController returns a function that starts the controller.
func (l *lab) prepareController(ctx context.Context) (launch func(onExit func(error)) (*process.Process, error), err error) {
	program, err := l.opts.programPath("weir", "make build")
	if err != nil {
		return nil, err
	}
	configFile := filepath.Join(l.dir, "azure.json")
	if err := writeJSON(configFile, l.azureJSON(l.noAdminStates)); err != nil {
		return nil, err
	}
	if l.metrics == "" {
		free, err := process.FreeAddresses(ctx, 3)
		if err != nil {
			return nil, err
		}
		l.metrics, l.health, l.debugEndpoint = free[0], free[1], free[2]
	}
	args := []string{
		"controller", "--kubeconfig", l.kubeconfig,
		"--config", configFile, "--azure-endpoint", l.endpoint, "--leader-elect-namespace", weirNamespace,
		"--leader-elect-lease-duration", leaseDuration.String(), "--leader-elect-renew-deadline", renewDeadline.String(),
		"--leader-elect-retry-period", retryPeriod.String(),
		"--metrics-bind-address", l.metrics, "--operator-bind-address", l.debugEndpoint, "--health-probe-bind-address", l.health, "--log-format", "text", "-v", "1",
	}
	if l.gatewayAPI {
		args = append(args, "--gateway-api")
	}
	return func(onExit func(error)) (*process.Process, error) {
		return process.StartCommand(ctx, process.Command{Dir: l.dir, Name: "weir", Path: program, Args: args, OnExit: onExit})
	}, nil
}

const readyTimeout = 5 * time.Minute

var errNotReady = errors.New("the controller is not ready")

func (l *lab) controllerReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%w after %s; its output is in %s", errNotReady, readyTimeout, l.controller.latest().Log))
	defer cancel()
	return pollUntil(ctx, 20*time.Millisecond, func() (bool, error) {
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

// reportUnreachable reports that the emulator is unreachable, unless its process exited, which is reported
// elsewhere.
func (l *lab) reportUnreachable(ctx context.Context, err error) {
	select {
	case <-l.emulator.Done():
	case <-ctx.Done():
	case <-time.After(exitDelay):
		l.onExit(err)
	}
}

// exitDelay is how long a process exit may take to be noticed after a broken connection.
const exitDelay = time.Second

// stopAll ends all processes, the controller first, so that it never sees a missing cluster.
func (l *lab) stopAll() {
	l.controller.stop(l.provisioner, l.page)
	process.StopAll(l.controlPlane, l.emulator)
}

func writeJSON(file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}
