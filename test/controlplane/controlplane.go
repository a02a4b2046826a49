// SPDX-License-Identifier: Apache-2.0

// Package controlplane gives a package's tests a real etcd and kube-apiserver, built by make
// kubelab.
package controlplane

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// root is the repository root, relative to the packages that use this one.
const root = "../.."

// Options configure the control plane of a package.
type Options struct {
	// Parallel is the test parallelism; 0 is the number of CPUs. Tests mostly wait.
	Parallel int
	// CRDs installs the BackendPool CRD.
	CRDs bool
	// AuditLog is the API server's audit log file; empty disables it.
	AuditLog string
	// Flags of the API server, without leading dashes.
	Flags map[string]string
	// SetUp runs before the tests. tearDown, if not nil, runs after them, before the API server
	// stops.
	SetUp func(*envtest.Environment) (tearDown func() error, err error)
}

// RunWithControlPlane runs a package's tests with a control plane and exits. It fails on leaked goroutines.
// Fuzzing starts no control plane (use -run='^$'), nor do tests that cannot use one.
func RunWithControlPlane(m *testing.M, o Options) {
	RunTests(m, o.Parallel, o.startAndSetUp)
}

// RunTests runs tests that start control planes themselves. stop, if not nil, runs after them, even
// if start failed.
func RunTests(m *testing.M, parallel int, start func() (stop func() error, err error)) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	flag.Parse()
	code, err := runFlag(m, parallel, start)
	if err == nil && code == 0 {
		err = goleak.Find(goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runFlag(m *testing.M, parallel int, start func() (func() error, error)) (code int, err error) {
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run(), nil
	}
	switch needed, err := needsControlPlane("."); {
	case err != nil:
		return 1, fmt.Errorf("which tests need a control plane: %w", err)
	case !needed:
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

// startAndSetUp starts and sets up a control plane and returns a function that stops it.
func (o Options) startAndSetUp() (stop func() error, err error) {
	env, err := StartControlPlane(o)
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

// StartControlPlane starts a control plane without calling SetUp.
func StartControlPlane(o Options) (*envtest.Environment, error) {
	env, err := newEnvironment(o.CRDs)
	if err == nil && o.AuditLog != "" {
		err = enableAudit(env, o.AuditLog)
	}
	if err != nil {
		return nil, err
	}
	for flag, value := range o.Flags {
		env.ControlPlane.GetAPIServer().Configure().Set(flag, value)
	}
	if err := startEnvironment(env); err != nil {
		return nil, fmt.Errorf("starting kube-apiserver: %w", err)
	}
	env.Config.QPS = -1
	return env, nil
}

// startEnvironment starts the control plane. envtest waits for the default namespace for only 5 s; on a busy machine that
// is repeated, with the control plane that runs.
func startEnvironment(env *envtest.Environment) error {
	_, err := env.Start()
	for range 60 {
		if err == nil || !strings.Contains(err.Error(), "default namespace") {
			break
		}
		env.UseExistingCluster = new(true)
		_, err = env.Start()
	}
	env.UseExistingCluster = nil // Stop stops it
	return err
}

// newEnvironment locates the programs: the folder set by make test, else that of make kubelab.
func newEnvironment(crds bool) (*envtest.Environment, error) {
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
	env := &envtest.Environment{BinaryAssetsDirectory: bin, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 5 * time.Minute, ControlPlaneStopTimeout: 5 * time.Minute}
	env.CRDInstallOptions.MaxTime = 5 * time.Minute
	if crds {
		env.CRDDirectoryPaths = []string{filepath.Join(root, "config", "crd", "weir.dev_backendpools.yaml")}
	}
	return env, nil
}

// auditPolicy omits bodies, and the stage before impersonation is known.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// enableAudit enables the API server's audit log, written before the response.
func enableAudit(env *envtest.Environment, log string) error {
	policy := log + ".policy"
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	env.ControlPlane.GetAPIServer().Configure().Set("audit-log-path", log).Set("audit-policy-file", policy)
	return nil
}
