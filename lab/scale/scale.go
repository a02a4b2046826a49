// SPDX-License-Identifier: Apache-2.0

// Package scale measures what Weir costs in a large cluster: the controller runs as a process
// between a real kube-apiserver and the ARM emulator, and what it has used is read off after each
// phase of a cluster's life.
//
//	scale.go    what is measured, and in which order
//	lab.go      the three processes
//	cluster.go  nodes, Services, endpoints and BackendPools, and what happens to them
//	azure.go    the Azure that they live in, and what it shows
//	flood.go    a flood of requests to the controller
//	meter.go    what the controller has used
//	phase.go    one phase, from its begin until nothing is left to do
//	table.go    the table, and its JSON
//	profile.go  a controller that can be profiled
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

// Options say how large the cluster is, and what is measured of it.
type Options struct {
	// Services each have a BackendPool, and endpoints on ten nodes.
	Services, Nodes, LoadBalancers int
	// WholeWrites has Azure take pools that are written with their load balancer.
	WholeWrites bool
	// Idle is for how long nothing happens in the idle phase.
	Idle time.Duration
	// Within bounds the whole run.
	Within time.Duration
	// Flood ends the run with a flood of requests to the controller.
	Flood bool
	// Profiles is a folder for a CPU profile and an allocation profile of each phase; empty is none.
	Profiles string
	// JSON prints the figures as JSON to Out. What happens on the way goes to Err.
	JSON     bool
	Out, Err io.Writer

	bin, weirlab string // folder of kubelab and weir, and the running program
}

// Bounds of Options.
const (
	endpoints  = 10 // of each Service
	mostOfEach = 10_000
	mostNodes  = 5_000
)

// Validate says what cannot be run.
func (o Options) Validate() error {
	switch {
	case o.Services < 1 || o.Services > mostOfEach:
		return fmt.Errorf("--services %d: give 1 to %d", o.Services, mostOfEach)
	case o.Nodes < 2*endpoints || o.Nodes > mostNodes:
		return fmt.Errorf("--nodes %d: give %d to %d", o.Nodes, 2*endpoints, mostNodes)
	case o.LoadBalancers < 1 || o.LoadBalancers > o.Services:
		return fmt.Errorf("--load-balancers %d: give 1 to as many as there are Services", o.LoadBalancers)
	case o.Idle < time.Second || o.Within <= o.Idle:
		return fmt.Errorf("--idle %s, --within %s: give a second at least, and more to the whole", o.Idle, o.Within)
	}
	return nil
}

// errLate is the cause of the end of a run that took too long.
var errLate = errors.New("the time of --within is over")

// Run plays the phases. Whatever it started has ended when it returns; the folder with the logs
// stays if it failed for another reason than that ctx is done.
func Run(ctx context.Context, o Options) (err error) {
	// The kernel ends the children when the thread ends that started them.
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
	ctx, cancel := context.WithTimeoutCause(ctx, o.Within, errLate)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	l := &lab{opts: o, dir: dir, fail: fail}
	err = (&run{opts: o, lab: l}).play(ctx)
	l.stop()
	switch {
	case err == nil || user.Err() != nil:
		return errors.Join(err, os.RemoveAll(dir))
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w; the logs of all processes are in %s", err, dir)
}

// run is one run of the phases.
type run struct {
	opts    Options
	lab     *lab
	cluster *cluster
	results []result
	// idles is what the controller uses while nothing happens, by the second, and look what it uses
	// to be asked once.
	idles, look usage
}

func (r *run) play(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for _, p := range r.phases() {
		if err := r.phase(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	// The figures are worth printing whatever Azure shows.
	return errors.Join(r.print(), r.agree(ctx))
}

// prepare starts the cluster and its Azure, and fills both.
func (r *run) prepare(ctx context.Context) error {
	r.say("starting etcd and kube-apiserver with %d nodes", r.opts.Nodes)
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
	r.say("making %d Services with %d endpoints and a BackendPool each", r.opts.Services, endpoints)
	return r.cluster.fill(ctx, r.say)
}

// agree compares at the end what Azure shows with what the endpoints ask for.
func (r *run) agree(ctx context.Context) error {
	shown, err := r.lab.shown(ctx)
	if err != nil {
		return err
	}
	wanted := r.cluster.wanted()
	for pool, addresses := range wanted {
		if is := shown[pool]; is != addresses {
			return fmt.Errorf("pool %s has %s, and is to have %s", pool, is, addresses)
		}
	}
	r.say("Azure shows all %d pools as the endpoints ask for", len(wanted))
	return nil
}

func (r *run) say(format string, a ...any) {
	_, _ = fmt.Fprintf(r.opts.Err, format+"\n", a...) // nobody may read it
}
