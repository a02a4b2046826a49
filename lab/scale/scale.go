// SPDX-License-Identifier: Apache-2.0

// Package scale measures the cost of Weir in a large cluster, with a real kube-apiserver and the
// ARM emulator. Resource usage is read after each phase.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Options define the cluster and what is measured.
type Options struct {
	// Each Service has a BackendPool and endpoints on ten nodes.
	Services, Nodes, LoadBalancers int
	// Idle is a duration.
	Idle time.Duration
	// Timeout limits the whole run.
	Timeout time.Duration
	// Flood adds a phase with a flood of requests.
	Flood bool
	// Profiles is a folder for profiles of each phase; empty disables them.
	Profiles string
	// JSON prints the results as JSON to Out. Err receives the progress.
	JSON     bool
	Out, Err io.Writer

	bin, weirlab string // kubelab and weir are in bin
}

// Bounds of Options.
const (
	endpoints   = 10 // per Service
	maxServices = 10_000
	maxNodes    = 5_000
)

// Validate checks the bounds.
func (o Options) Validate() error {
	switch {
	case o.Services < 1 || o.Services > maxServices:
		return fmt.Errorf("--services %d: give 1 to %d", o.Services, maxServices)
	case o.Nodes < 2*endpoints || o.Nodes > maxNodes:
		return fmt.Errorf("--nodes %d: give %d to %d", o.Nodes, 2*endpoints, maxNodes)
	case o.LoadBalancers < 1 || o.LoadBalancers > o.Services:
		return fmt.Errorf("--load-balancers %d: give 1 to as many as there are Services", o.LoadBalancers)
	case o.Idle < time.Second || o.Timeout <= o.Idle:
		return fmt.Errorf("--idle %s, --within %s: give a second at least, and more to the whole", o.Idle, o.Timeout)
	}
	return nil
}

var errTimeout = errors.New("the time of --within is over")

// Run runs the phases and stops all processes. The folder with the logs is retained on failure.
func Run(ctx context.Context, o Options) (err error) {
	// The kernel kills children when their parent thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := o.Validate(); err != nil {
		return err
	}
	if o.weirlab, err = os.Executable(); err != nil {
		return err
	}
	o.bin = filepath.Dir(o.weirlab)
	dir, err := os.MkdirTemp("", "weir-scale-")
	if err != nil {
		return err
	}
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	user := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	l := &lab{opts: o, dir: dir, fail: fail}
	err = (&run{opts: o, lab: l}).runPhases(ctx)
	l.stopAll()
	switch {
	case err == nil || user.Err() != nil:
		return errors.Join(err, os.RemoveAll(dir))
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w; the logs of all processes are in %s", err, dir)
}

type run struct {
	opts    Options
	lab     *lab
	cluster *labCluster
	results []phaseResult
	// per second, and per metrics read
	idleUsage, readUsage resourceUsage
}

func (r *run) runPhases(ctx context.Context) error {
	if err := r.prepareLab(ctx); err != nil {
		return err
	}
	for _, p := range r.newPhases() {
		if err := r.runPhase(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	// Print the results even if the check fails.
	return errors.Join(r.printResults(), r.checkPools(ctx))
}

func (r *run) prepareLab(ctx context.Context) error {
	r.logf("starting etcd and kube-apiserver with %d nodes", r.opts.Nodes)
	if err := r.lab.startKubelab(ctx); err != nil {
		return err
	}
	if err := r.lab.startEmulator(ctx); err != nil {
		return err
	}
	var err error
	if r.cluster, err = newCluster(r.lab.kubeconfig, r.opts); err != nil {
		return err
	}
	r.logf("making %d Services with %d endpoints and a BackendPool each", r.opts.Services, endpoints)
	return r.cluster.createObjects(ctx, r.logf)
}

func (r *run) checkPools(ctx context.Context) error {
	shown, err := r.lab.azurePools(ctx)
	if err != nil {
		return err
	}
	wanted := r.cluster.desiredPools()
	for pool, addresses := range wanted {
		if got := shown[pool]; got != addresses {
			return fmt.Errorf("pool %s has %s, and is to have %s", pool, got, addresses)
		}
	}
	r.logf("Azure shows all %d pools as the endpoints ask for", len(wanted))
	return nil
}

func (r *run) logf(format string, a ...any) {
	_, _ = fmt.Fprintf(r.opts.Err, format+"\n", a...) // best effort
}
