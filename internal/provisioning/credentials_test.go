// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/provisioning/policy"
)

func newCertificate(t *testing.T, until time.Time, names ...string) (pair tls.Certificate, cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	got := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "edge"}, NotBefore: until.Add(-time.Hour), NotAfter: until, DNSNames: names,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(names) == 0 {
		got.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	raw, err := x509.CreateCertificate(rand.Reader, got, got, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	return pair, cert, key
}

// Rejections by a target are reported with status, cause and hint, never as "unknown".
func TestRefusalsOfTargets(t *testing.T) {
	status := func(code int, reason, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
		}
	}
	page := func(code int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "https://login.example.com/x")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	now := time.Now()
	good, goodCert, goodKey := newCertificate(t, now.Add(time.Hour))
	old, oldCert, oldKey := newCertificate(t, now.Add(-time.Minute))
	named, namedCert, _ := newCertificate(t, now.Add(time.Hour), "elsewhere")
	unauthorized := status(401, "Unauthorized", "Unauthorized")
	certed := func(cfg *rest.Config) { cfg.CertData, cfg.KeyData = goodCert, goodKey }
	for about, tt := range map[string]struct {
		answers http.HandlerFunc
		config  func(*rest.Config)
		server  func(*tls.Config)
		want    []string
	}{
		"a client certificate of another cluster": {unauthorized, certed, nil, []string{"401 Unauthorized: the target does not accept the client certificate"}},
		"one that has expired":                    {unauthorized, func(c *rest.Config) { c.CertData, c.KeyData = oldCert, oldKey }, nil, []string{"401 Unauthorized", "the client certificate, which expired at 20"}},
		"a token of another cluster":              {unauthorized, func(c *rest.Config) { c.BearerToken = "x" }, nil, []string{"401 Unauthorized: the target does not accept the token"}},
		"a password":                              {unauthorized, func(c *rest.Config) { c.Username, c.Password = "x", "y" }, nil, []string{"the user name and password"}},
		"no credentials":                          {unauthorized, nil, nil, []string{"401 Unauthorized: the kubeconfig has no token, client certificate or password"}},
		"a 401 without a body":                    {page(401, "", ""), certed, nil, []string{"401 Unauthorized: the target does not accept the client certificate"}},
		"a 401 of text":                           {page(401, "text/plain", "who are you"), certed, nil, []string{"401 Unauthorized"}},
		"a right is missing":                      {status(403, "Forbidden", `forbidden: User "edge" cannot get path "/api/v1"`), certed, nil, []string{`User "edge" cannot get path`, "403 Forbidden: the target authenticated the user"}},
		"a 500":                                   {status(500, "InternalError", "etcd is away"), certed, nil, []string{"etcd is away"}},
		"a page in place of an answer":            {page(200, "text/html; charset=utf-8", "<html>log in</html>"), certed, nil, []string{"200 OK with an HTML page", "a proxy or a login page"}},
		"a proxy whose backend is away":           {page(502, "text/html", "<html>Bad Gateway</html>"), certed, nil, []string{"502 Bad Gateway with an HTML page"}},
		"a login page":                            {page(401, "Text/HTML", "<html>log in</html>"), certed, nil, []string{"401 Unauthorized with an HTML page"}},
		"a redirection":                           {page(302, "", ""), certed, nil, []string{"302 Found and redirects to login.example.com"}},
		"no API server":                           {page(404, "text/plain", "404 page not found"), certed, nil, []string{"the target has no /api/v1", "correct server of the kubeconfig"}},
		"text that is no JSON":                    {page(200, "application/json", "ok"), certed, nil, []string{"JSON that cannot be read"}},
		"another authority":                       {unauthorized, func(c *rest.Config) { c.CAData = oldCert }, nil, []string{"signed by unknown authority", "certificate-authority-data of the kubeconfig"}},
		"a server whose certificate has expired":  {unauthorized, func(c *rest.Config) { c.CAData = oldCert }, func(c *tls.Config) { c.Certificates = []tls.Certificate{old} }, []string{"certificate has expired", "renew the certificate of the target's API server"}},
		"a certificate of another name":           {unauthorized, func(c *rest.Config) { c.CAData = namedCert }, func(c *tls.Config) { c.Certificates = []tls.Certificate{named} }, []string{"server of the kubeconfig is no name of the target's certificate"}},
		"a handshake that asks for a certificate": {unauthorized, nil, func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }, []string{"the kubeconfig has no token, client certificate or password"}},
		"one that rejects it":                     {unauthorized, certed, func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool() }, []string{"the target rejects the client certificate"}},
	} {
		t.Run(about, func(t *testing.T) {
			server := httptest.NewUnstartedServer(tt.answers)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS12}
			if tt.server != nil {
				tt.server(server.TLS)
			}
			server.StartTLS()
			defer server.Close()
			cfg := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: goodCert}}
			if tt.config != nil {
				tt.config(cfg)
			}
			r := &Reconciler{Config: Config{API: &rest.Config{}}}
			to, err := r.newTarget(t.Context(), cfg, "edge", "default", dialPolicy{isLocal: true})
			if err != nil {
				t.Fatal(err)
			}
			defer to.close()
			_, err = to.kinds.RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
			if err == nil {
				t.Fatal("it is answered")
			}
			text := to.credentials.addHint(fmt.Errorf("ConfigMap a: %w", err), now).Error()
			for _, want := range append(tt.want, "ConfigMap a: ") {
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want %q", text, want)
				}
			}
			if strings.HasSuffix(text, "unknown") || strings.Contains(text, ": unknown (") || strings.Contains(text, "<html") {
				t.Errorf("got %q", text)
			}
		})
	}
}

// The cause is in the attempt's error.
func TestAttemptReportsReasonOfRejection(t *testing.T) {
	err := (&run{target: &target{credentials: credentials{kind: "the token"}}, reconciler: &Reconciler{}, log: &policy.Log{}}).traceStep(t.Context(), "first", func(context.Context) error {
		return apierrors.NewUnauthorized("Unauthorized")
	})
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized: the target does not accept the token") {
		t.Error(err)
	}
}
