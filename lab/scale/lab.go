// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"weir.dev/weir/lab/process"
)

type lab struct {
	opts Options
	dir  string      // logs, kubeconfig and azure.json; etcd's data
	fail func(error) // called when a process ends unexpectedly

	kubelab, emulator, controller *process.Process

	kubeconfig      string
	endpoint, admin string // of the emulator
	// of the controller
	metrics, health, profiles string
	metricsReads              int
	started                   time.Time // the controller
}

func (l *lab) startProcess(ctx context.Context, name, program string, args ...string) (*process.Process, error) {
	return process.StartCommand(ctx, process.Command{Dir: l.dir, Name: name, Path: program, Args: args, OnExit: l.fail})
}

func (l *lab) startKubelab(ctx context.Context) error {
	program := filepath.Join(l.opts.bin, "kubelab")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%s is not there: run make kubelab first", program)
	}
	l.kubeconfig = filepath.Join(l.dir, "kubeconfig")
	var err error
	l.kubelab, err = l.startProcess(ctx, "kubelab", program, "up", "--exit-with-stdin",
		"--nodes", strconv.Itoa(l.opts.Nodes), "--dir", filepath.Join(l.dir, "cluster"), "--kubeconfig", l.kubeconfig)
	if err != nil {
		return err
	}
	_, err = l.kubelab.FirstLine(ctx)
	return err
}

// startEmulator starts an Azure without latency, so only Weir is measured.
func (l *lab) startEmulator(ctx context.Context) error {
	seed, err := l.writeJSON("azure-resources.json", seedResources(l.opts))
	if err != nil {
		return err
	}
	l.emulator, err = l.startProcess(ctx, "emulator", l.opts.weirlab, "emulator", "--exit-with-stdin",
		"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--output", "json", "--seed-file", seed,
		"--latency-scale", "0", "--throttle", "off")
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

// startWeir disables leader election.
func (l *lab) startWeir(ctx context.Context) error {
	file, err := l.writeJSON("azure.json", azureJSON())
	if err != nil {
		return err
	}
	free, err := process.FreeAddresses(ctx, 3)
	if err != nil {
		return err
	}
	l.metrics, l.health, l.profiles = free[0], free[1], ""
	program, args := filepath.Join(l.opts.bin, "weir"), []string{"controller"}
	if l.opts.Profiles != "" {
		l.profiles = free[2]
		program, args = l.opts.weirlab, []string{ProfiledCommand, "--profiles-bind-address", l.profiles}
	}
	l.started = time.Now()
	l.controller, err = l.startProcess(ctx, "weir", program, append(args, ControllerFlags(l.kubeconfig, file, l.endpoint, l.metrics, l.health)...)...)
	if err != nil {
		return err
	}
	return l.waitReady(ctx)
}

// ControllerFlags are accepted by the controller and by ProfiledCommand.
func ControllerFlags(kubeconfig, file, endpoint, metrics, health string) []string {
	return []string{
		"--kubeconfig", kubeconfig, "--config", file, "--azure-endpoint", endpoint, "--leader-elect=false",
		"--metrics-bind-address", metrics, "--operator-bind-address", "0", "--health-probe-bind-address", health,
	}
}

func (l *lab) waitReady(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.health+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close() // only the status matters
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := sleepContext(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// stopAll ends the controller first, while its cluster is running.
func (l *lab) stopAll() {
	process.StopAll(l.controller)
	process.StopAll(l.kubelab, l.emulator)
}

func (l *lab) writeJSON(name string, v any) (string, error) {
	raw, err := json.Marshal(v)
	file := filepath.Join(l.dir, name)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	return file, err
}

func sleepContext(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
