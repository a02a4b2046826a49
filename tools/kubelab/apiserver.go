// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

type apiServerOptions struct {
	dir       string // for keys, certificate and token
	etcdURL   string
	port      int // 0 selects a free port
	auditLog  string
	dualStack bool
}

type apiServer struct {
	config *rest.Config // admin credentials
	failed <-chan error // receives one error when the server stops
}

// startAPIServer starts kube-apiserver on 127.0.0.1. It runs until ctx is done and may not be ready
// on return; see waitReady.
func startAPIServer(ctx context.Context, opts apiServerOptions) (*apiServer, error) {
	// Listen here so that no other process can take the chosen port.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.port)))
	if err != nil {
		return nil, fmt.Errorf("--port %d: %w", opts.port, err)
	}
	token, err := writeSecrets(opts.dir)
	if err != nil {
		return nil, err
	}
	if opts.auditLog != "" {
		if err := os.WriteFile(auditPolicyFile(opts.dir), []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
	}
	s := options.NewServerRunOptions()
	s.SecureServing.Listener = listener
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range s.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := flags.Parse(apiServerFlags(opts, port)); err != nil {
		return nil, err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // as in kube-apiserver's main
	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	ca, err := os.ReadFile(filepath.Join(opts.dir, "apiserver.crt")) // written by Complete
	if err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	go func() {
		err := app.Run(ctx, completed)
		if err == nil {
			err = errors.New("no reason given")
		}
		failed <- err
	}()
	return &apiServer{failed: failed, config: &rest.Config{
		Host:            "https://" + listener.Addr().String(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}}, nil
}

// auditPolicy logs each completed request without bodies, so the log contains no Secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

func auditPolicyFile(dir string) string { return filepath.Join(dir, "audit-policy.yaml") }

// writeSecrets writes the service account signing key and the admin token to dir unless they exist,
// and returns the token.
func writeSecrets(dir string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return "", err
	}
	line := rand.Text() + ",kubelab-admin,kubelab-admin,system:masters\n"
	tokens := filepath.Join(dir, "tokens.csv")
	if err := errors.Join(writeNew(filepath.Join(dir, "service-account.key"), pem), writeNew(tokens, []byte(line))); err != nil {
		return "", err
	}
	kept, err := os.ReadFile(tokens)
	if err != nil {
		return "", err
	}
	token, _, ok := strings.Cut(string(kept), ",")
	if !ok || token == "" {
		return "", fmt.Errorf("%s holds no token; remove it, and a new one is made", tokens)
	}
	return token, nil
}

func apiServerFlags(opts apiServerOptions, port int) []string {
	key := filepath.Join(opts.dir, "service-account.key")
	serviceRange := "10.0.0.0/16"
	if opts.dualStack {
		serviceRange += ",fd00:10:96::/112"
	}
	flags := []string{
		"--etcd-servers=" + opts.etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + opts.dir,
		"--token-auth-file=" + filepath.Join(opts.dir, "tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubelab.invalid",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		// No controller creates service accounts here; this plugin would reject every pod.
		"--disable-admission-plugins=ServiceAccount",
		// 127.0.0.1 is not a valid endpoint for the kubernetes Service.
		"--endpoint-reconciler-type=none",
		// Allow thousands of Services with node ports and health check ports, without rate limits.
		"--service-cluster-ip-range=" + serviceRange,
		"--service-node-port-range=1024-65535",
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if opts.auditLog != "" {
		flags = append(flags, "--audit-log-path="+opts.auditLog, "--audit-policy-file="+auditPolicyFile(opts.dir))
	}
	return flags
}

// waitReady waits for /readyz and for the default namespace, which is created slightly later.
func (a *apiServer) waitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(a.config)
	if err != nil {
		return err
	}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			_, err = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		}
		if err == nil {
			return nil
		}
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
			return fmt.Errorf("kube-apiserver refuses its administrator: %w", err)
		}
		select {
		case stopped := <-a.failed:
			return fmt.Errorf("kube-apiserver did not start: %w", stopped)
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready in time: %w", err)
		case <-tick.C:
		}
	}
}
