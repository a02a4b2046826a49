// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"weir.dev/weir/internal/armerror"
)

// spyToken records token requests.
type spyToken struct{ asked *policy.TokenRequestOptions }

func (s spyToken) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	*s.asked = o
	return azcore.AccessToken{Token: testToken, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// entra is a fake of Microsoft Entra ID and IMDS.
type entra struct {
	asked []*url.URL
	form  url.Values
	head  http.Header
}

func (e *entra) Do(req *http.Request) (*http.Response, error) {
	e.asked = append(e.asked, req.URL)
	body := fmt.Sprintf(`{"access_token":"%s","token_type":"Bearer","expires_in":3600,"expires_on":"%d","resource":"x"}`, testToken, time.Now().Add(time.Hour).Unix())
	switch {
	case strings.Contains(req.URL.Path, "openid-configuration"):
		host := "https://" + req.URL.Host + "/tenant"
		body = fmt.Sprintf(`{"token_endpoint":"%s/token","authorization_endpoint":"%s/authorize","issuer":"%s"}`, host, host, host)
	case strings.Contains(req.URL.Path, "discovery/instance"):
		body = `{"tenant_discovery_endpoint":"https://login.microsoftonline.com/tenant/v2.0/.well-known/openid-configuration","metadata":[]}`
	case req.Method == http.MethodPost:
		_ = req.ParseForm()
		e.form, e.head = req.PostForm, req.Header
	default:
		e.head = req.Header
	}
	answer := &fakeARM{answer: replySequence(reply{status: 200, body: body})}
	return answer.Do(req)
}

func (e *entra) last() *url.URL { return e.asked[len(e.asked)-1] }

var audiences atomic.Int64

func token(t *testing.T, c Credentials, e *entra) {
	t.Helper()
	cred, err := c.NewTokenCredential(publicEndpoint(t), e)
	if err != nil {
		t.Fatal(err)
	}
	// The SDK caches a machine's tokens by audience for the whole process.
	got, err := cred.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{fmt.Sprintf("https://aud-%d/.default", audiences.Add(1))}})
	if err != nil || got.Token != testToken {
		t.Fatalf("no token: %v", err)
	}
}

func fullResource(t *testing.T) Credentials {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("service-account-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Credentials{
		TenantID: "tenant", ClientID: "client", WorkloadIdentity: true, FederatedTokenFile: file,
		ManagedIdentity: true, UserAssignedIdentityID: "identity",
		ClientSecret: "password", CertificatePath: certificateFile(t),
	}
}

// With several identities configured, the order is fixed.
func TestSelectedIdentity(t *testing.T) {
	t.Setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:41/msi/token")
	t.Setenv("IDENTITY_HEADER", "header-secret")
	c, e := fullResource(t), &entra{}
	token(t, c, e)
	if e.form.Get("client_assertion") != "service-account-token" {
		t.Errorf("workload identity comes first, sent %v", e.form)
	}
	c.WorkloadIdentity, e = false, &entra{}
	token(t, c, e)
	if e.last().Host != "127.0.0.1:41" || e.last().Query().Get("client_id") != "identity" || e.head.Get("X-IDENTITY-HEADER") != "header-secret" {
		t.Errorf("managed identity comes second, by way of IDENTITY_ENDPOINT; asked %v", e.last())
	}
	c.ManagedIdentity, e = false, &entra{}
	token(t, c, e)
	if e.form.Get("client_secret") != "password" || e.form.Get("client_id") != "client" {
		t.Errorf("the client secret comes third, sent %v", e.form)
	}
	c.ClientSecret, e = "", &entra{}
	token(t, c, e)
	if assertion := e.form.Get("client_assertion"); !strings.HasPrefix(assertion, "eyJ") {
		t.Errorf("the certificate comes last, sent %v", e.form)
	}
}

func TestManagedIdentityByResourceIDOrOfTheSystem(t *testing.T) {
	for id, want := range map[string]string{"": "", "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i": "msi_res_id"} {
		e := &entra{}
		token(t, Credentials{ManagedIdentity: true, UserAssignedIdentityID: id}, e)
		query := e.last().Query()
		if e.last().Host != "169.254.169.254" || query.Get("client_id") != "" || want != "" && query.Get(want) != id {
			t.Errorf("identity %q: asked %v", id, e.last())
		}
	}
}

func TestInvalidCredentials(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no-such.pem")
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	if err := os.WriteFile(garbage, []byte(testToken), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		c        Credentials
		wantText []string
	}{
		{"nothing", Credentials{ClientID: "c", TenantID: "t"}, []string{"useFederatedWorkloadIdentityExtension", "useManagedIdentityExtension", "aadClientSecret", "aadClientCertPath"}},
		{"no token file", Credentials{WorkloadIdentity: true, ClientID: "c", TenantID: "t"}, []string{"aadFederatedTokenFile"}},
		{"no tenant", Credentials{ClientID: "c", ClientSecret: testToken}, []string{"tenantId"}},
		{"no such certificate", Credentials{ClientID: "c", TenantID: "t", CertificatePath: missing}, []string{"aadClientCertPath", missing}},
		{"no certificate in it", Credentials{ClientID: "c", TenantID: "t", CertificatePath: garbage, CertificatePassword: testToken}, []string{"aadClientCertPath", garbage}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("AZURE_FEDERATED_TOKEN_FILE", "x")
			_ = os.Unsetenv("AZURE_FEDERATED_TOKEN_FILE")
			cred, err := tt.c.NewTokenCredential(publicEndpoint(t), &entra{})
			if err == nil || cred != nil {
				t.Fatalf("got %v, %v", cred, err)
			}
			for _, want := range tt.wantText {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not name %s", err, want)
				}
			}
			if strings.Contains(err.Error()+fmt.Sprintf("%v %+v %#v", tt.c, tt.c, tt.c), testToken) {
				t.Errorf("a secret is printed: %v %#v", err, tt.c)
			}
		})
	}
}

// A token of another tenant is requested of that tenant, and only if it is configured.
func TestTokensOfAnotherTenant(t *testing.T) {
	for name, c := range map[string]Credentials{
		"workload identity": fullResource(t),
		"secret":            {TenantID: "tenant", ClientID: "client", ClientSecret: "password"},
		"certificate":       {TenantID: "tenant", ClientID: "client", CertificatePath: certificateFile(t)},
	} {
		for _, others := range [][]string{{"other"}, nil} {
			c.OtherTenants = others
			e := &entra{}
			cred, err := c.NewTokenCredential(publicEndpoint(t), e)
			if err != nil {
				t.Fatal(err)
			}
			for _, tenant := range []string{"tenant", "other"} {
				_, err := tenantCredential{cred, tenant}.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://arm.example/.default"}})
				allowed := tenant == "tenant" || others != nil
				if (err == nil) != allowed {
					t.Errorf("%s, others %v: token of %s: %v", name, others, tenant, err)
				}
				if allowed && !slices.ContainsFunc(e.asked, func(u *url.URL) bool { return strings.HasPrefix(u.Path, "/"+tenant+"/v2.0/") }) {
					t.Errorf("%s: token of %s is requested at %v", name, tenant, e.asked)
				}
			}
		}
	}
}

// A credential error is terminal and has one line.
func TestFailingCredential(t *testing.T) {
	refusing := &fakeARM{answer: replySequence(reply{status: 401, body: `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1"}`})}
	cred, err := Credentials{TenantID: "tenant", ClientID: "client", ClientSecret: testToken}.NewTokenCredential(publicEndpoint(t), refusing)
	if err != nil {
		t.Fatal(err)
	}
	wire := &fakeARM{answer: replySequence(shown)}
	client := newClient(t, wire, func(o *Options) { o.Credential = cred })
	_, err = client.GetPool(t.Context(), webPool)
	wantFault(t, err, armerror.Terminal, armerror.CodeUnclassified)
	_, err = client.PutPool(t.Context(), readPool(t))
	wantFault(t, err, armerror.Terminal, armerror.CodeUnclassified)
	if wire.count("") != 0 {
		t.Errorf("%d requests without a token", wire.count(""))
	}
}

func certificateFile(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "client.pem")
	content := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})...)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
