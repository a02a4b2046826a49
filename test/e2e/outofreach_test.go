// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

const (
	// outage covers an attempt, about 6 s in the SDK, and two drift periods.
	outage = 40 * time.Second
	drift  = 15 * time.Second
)

// While Azure is unreachable, the controller answers probes, reports it once on Service and
// BackendPool, and is in sync soon after the end. Scenarios 50 to 52 cover outages of ten minutes in virtual time: within a
// drift period.
func TestAzureOutOfReach(t *testing.T) {
	runParallel(t)
	for name, how := range map[string]func(*testing.T, *outOfReach){
		"connections are refused": checkRejected, "a firewall opens TLS": checkOpen, "silence": checkSilent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, armemu.Options{})
			o := &outOfReach{lab: l, azure: l.behindANetwork()}
			l.pool("web", "10.9.9.9")
			o.n1, o.n2 = l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
			l.service("web", o.n1)
			o.weir = l.controller("--leader-elect=false")
			l.expectInSyncAfter(func() error { return nil }, "10.0.0.1", "10.9.9.9")
			l.waitDriftRead(o.weir)
			how(t, o)
		})
	}
}

// outOfReach is a Service on one of two nodes, a controller, and its network to Azure.
type outOfReach struct {
	*lab
	azure  *apifault.Network
	weir   *program
	n1, n2 string
}

func checkRejected(_ *testing.T, o *outOfReach) {
	o.azure.RefuseConnections()
	o.move("web", o.n2)
	o.expectOneReport(o.weir, "connection refused")
	o.expectInSyncAfter(o.azure.Restore, "10.0.0.2", "10.9.9.9")
}

func checkOpen(t *testing.T, o *outOfReach) {
	showing := func(cert tls.Certificate) func() error {
		return func() error {
			o.azure.RefuseConnections()
			o.azure.ServeListener(o.serveAs(cert))
			return o.azure.Restore()
		}
	}
	o.must(showing(untrustedCertificate(t))()) // like a firewall that terminates TLS
	o.move("web", o.n2)
	o.expectOneReport(o.weir, "certificate signed by unknown authority")
	o.expectInSyncAfter(showing(trustedCertificate(t)), "10.0.0.2", "10.9.9.9")
}

func checkSilent(t *testing.T, o *outOfReach) {
	// The controller waits through a silent network.
	words := o.countReports()
	o.azure.BlackHole()
	o.move("web", o.n1, o.n2)
	o.pollEndpoints(o.weir, 10*time.Second)
	if now := o.countReports(); now != words {
		t.Errorf("in silence it said %v, and before it %v", now, words)
	}
	o.expectInSyncAfter(o.azure.Restore, "10.0.0.1", "10.0.0.2", "10.9.9.9")

	// A connection that a firewall has forgotten is replaced.
	o.azure.Forget()
	o.move("web", o.n1)
	o.expectInSyncAfter(func() error { return nil }, "10.0.0.1", "10.9.9.9")

	// It does not delay shutdown.
	o.azure.BlackHole()
	o.move("web", o.n2)
	o.pollEndpoints(o.weir, time.Second)
	o.must(o.weir.Signal(syscall.SIGTERM))
	elapsed := controlplane.Eventually(t, "the stop", 3*time.Minute, func() error {
		select {
		case <-o.weir.Done():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if err := o.weir.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if elapsed > 30*time.Second { // the grace period of a pod
		t.Errorf("the stop took %s", elapsed)
	}
}

// behindANetwork puts the lab's Azure behind TLS trusted by the controller, and a faulty network.
func (l *lab) behindANetwork() *apifault.Network {
	l.t.Helper()
	network, err := apifault.NewNetwork()
	l.must(err)
	l.t.Cleanup(network.Close)
	cert := trustedCertificate(l.t)
	network.ServeListener(l.serveAs(cert))
	l.url = "https://" + network.Address
	l.env = []string{"SSL_CERT_FILE=" + l.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})))}
	l.write("azure.json", fmt.Sprintf(`{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own",
		"loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolDriftRepairIntervalInSeconds":%d}`, int(drift.Seconds())))
	return network
}

// serveAs serves the lab's Azure with a certificate.
func (l *lab) serveAs(cert tls.Certificate) func(net.Listener) {
	server := &http.Server{
		Handler: l.emulator, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}
	return func(listener net.Listener) { _ = server.ServeTLS(listener, "", "") } // returns when the listener closes
}

// trustedCertificate is httptest's certificate for 127.0.0.1.
func trustedCertificate(t testing.TB) tls.Certificate {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return server.TLS.Certificates[0]
}

// untrustedCertificate is an untrusted certificate for 127.0.0.1.
func untrustedCertificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// waitDriftRead waits for a drift read, so that the endpoints' next move comes before the following
// one.
func (l *lab) waitDriftRead(p *program) {
	l.t.Helper()
	looks := func() string {
		body, err := get(p.metrics, "/metrics")
		l.must(err)
		_, after, _ := strings.Cut(body, "\nweir_pool_drift_checks_total")
		line, _, _ := strings.Cut(after, "\n# ")
		return line
	}
	before := looks()
	l.eventually("a look for drift", func() error {
		if looks() == before {
			return errors.New("none")
		}
		return nil
	})
}

// pollEndpoints polls health and metrics continuously.
func (l *lab) pollEndpoints(p *program, duration time.Duration) {
	l.t.Helper()
	hurried := &http.Client{Timeout: 30 * time.Second} // requests to Azure take longer
	defer hurried.CloseIdleConnections()
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		for path, address := range map[string]string{"/healthz": p.health, "/readyz": p.health, "/metrics": p.metrics} {
			res, err := hurried.Get("http://" + address + path)
			if err != nil {
				l.t.Fatalf("%s: %v", path, err)
			}
			_ = res.Body.Close() // only the status matters
			if res.StatusCode != http.StatusOK {
				l.t.Errorf("%s: %s", path, res.Status)
			}
		}
	}
}

// eventCounts counts events by reason.
type eventCounts struct{ updated, retrying, failed, problem int }

func (l *lab) countReports() eventCounts {
	l.t.Helper()
	var list corev1.EventList
	l.must(l.cluster.List(l.t.Context(), &list, client.InNamespace(l.namespace)))
	var reports eventCounts
	for _, e := range list.Items {
		n := int(max(e.Count, 1))
		switch {
		case e.InvolvedObject.Kind == "BackendPool":
			reports.problem += n
		case strings.HasSuffix(e.Reason, "Updated"):
			reports.updated += n
		case strings.HasSuffix(e.Reason, "Retrying"):
			reports.retrying += n
		case strings.HasSuffix(e.Reason, "Failed"):
			reports.failed += n
		}
	}
	return reports
}

// expectOneReport waits until Service and BackendPool report an outage with this text, and checks that
// it is reported only once.
func (l *lab) expectOneReport(p *program, of string) {
	l.t.Helper()
	before, end := l.countReports(), time.Now().Add(outage)
	l.eventually("a Failed that says "+of, func() error {
		if now := l.countReports(); now.failed == before.failed || now.problem == before.problem {
			return fmt.Errorf("said %+v, and %+v before", now, before)
		}
		var pool v1alpha1.BackendPool
		l.must(l.cluster.Get(l.t.Context(), key(l.namespace, "web"), &pool))
		if c := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionSynced); c.Reason != v1alpha1.ReasonFailed || !strings.Contains(c.Message, of) {
			return errors.New(c.Reason + ": " + c.Message)
		}
		return nil
	})
	l.pollEndpoints(p, time.Until(end))
	if now := l.countReports(); now.failed != before.failed+1 || now.retrying != before.retrying || now.problem != before.problem+1 {
		l.t.Errorf("said %+v, and %+v before: want one Failed and one event on the BackendPool", now, before)
	}
}

// expectInSyncAfter ends an outage, and waits until the pool holds these members and the Service has an event.
func (l *lab) expectInSyncAfter(end func() error, want ...string) {
	l.t.Helper()
	before := l.countReports().updated
	l.must(end())
	start := time.Now()
	l.becomes("web", want...)
	l.t.Logf("in sync %s after it", time.Since(start).Round(10*time.Millisecond))
	l.eventually("the word", func() error {
		if now := l.countReports().updated; now != before+1 {
			return fmt.Errorf("Updated was said %d times, want one more than %d", now, before)
		}
		return nil
	})
}
