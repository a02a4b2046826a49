// SPDX-License-Identifier: Apache-2.0

// Package controlplane gives the tests of a package a real etcd and kube-apiserver, which
// make kubelab builds. It is for tests alone.
package controlplane

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// root is the repository, as seen from the packages that use this one.
const root = "../.."

// Options say what the tests of a package need besides.
type Options struct {
	// Parallel is how many run at once; 0 is as many as there are CPUs. They wait more
	// than they work.
	Parallel int
	// CRDs has the API server know BackendPools.
	CRDs bool
	// AuditLog is a file in which the API server notes every request: who asked for what,
	// and what allowed it. Empty is none.
	AuditLog string
	// Flags of the API server, without their dashes.
	Flags map[string]string
	// SetUp runs before the tests. What it returns runs after them, if it is not nil, with
	// the API server still there.
	SetUp func(*envtest.Environment) (tearDown func() error, err error)
}

// Main runs the tests of a package beside a control plane, and ends the program. It fails
// if they leave goroutines behind. Nothing that is fuzzed needs a cluster, so none is
// started then: fuzz with -run='^$'. Nor is one started for tests that have no way to it; see
// needed.
func Main(m *testing.M, o Options) {
	Beside(m, o.Parallel, o.start)
}

// Beside is Main for tests that start control planes as they need them: what start returns runs
// after them, also if start fails, unless it is nil.
func Beside(m *testing.M, parallel int, start func() (stop func() error, err error)) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	flag.Parse()
	code, err := run(m, parallel, start)
	if err == nil && code == 0 {
		err = goleak.Find(goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, parallel int, start func() (func() error, error)) (code int, err error) {
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run(), nil
	}
	switch is, err := needed("."); {
	case err != nil:
		return 1, fmt.Errorf("which tests need a control plane: %w", err)
	case !is:
		return m.Run(), nil
	}
	if parallel > 0 {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			return 1, err
		}
	}
	stop, err := start()
	if stop != nil {
		defer func() { err = errors.Join(err, stop()) }()
	}
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// start starts a control plane and sets it up, and returns what takes both down.
func (o Options) start() (stop func() error, err error) {
	env, err := Start(o)
	if err != nil {
		return nil, err
	}
	if o.SetUp == nil {
		return env.Stop, nil
	}
	tearDown, err := o.SetUp(env)
	if tearDown == nil {
		return env.Stop, err
	}
	return func() error { return errors.Join(tearDown(), env.Stop()) }, err
}

// Start starts a control plane, and leaves SetUp to the caller.
func Start(o Options) (*envtest.Environment, error) {
	env, err := environment(o.CRDs)
	if err == nil && o.AuditLog != "" {
		err = audit(env, o.AuditLog)
	}
	if err != nil {
		return nil, err
	}
	for flag, value := range o.Flags {
		env.ControlPlane.GetAPIServer().Configure().Set(flag, value)
	}
	if _, err := env.Start(); err != nil {
		return nil, fmt.Errorf("starting kube-apiserver: %w", err)
	}
	env.Config.QPS = -1
	return env, nil
}

// environment finds the programs where make test says, else where make kubelab puts them.
func environment(crds bool) (*envtest.Environment, error) {
	bin := os.Getenv("KUBEBUILDER_ASSETS")
	if bin == "" {
		bin = filepath.Join(root, "bin")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w: run make kubelab first", err)
		}
	}
	env := &envtest.Environment{BinaryAssetsDirectory: bin, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: time.Minute}
	if crds {
		env.CRDDirectoryPaths = []string{filepath.Join(root, "config", "crd", "weir.dev_backendpools.yaml")}
	}
	return env, nil
}

// auditPolicy leaves out bodies, and the moment at which it is not known yet as whom the
// caller acts.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// audit has the API server write its log, which it does before it answers.
func audit(env *envtest.Environment, log string) error {
	policy := log + ".policy"
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	env.ControlPlane.GetAPIServer().Configure().Set("audit-log-path", log).Set("audit-policy-file", policy)
	return nil
}
