// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Credentials are the identities that azure.json can configure. String and GoString print no
// secrets.
type Credentials struct {
	TenantID string
	ClientID string
	// OtherTenants are tenants other than TenantID that may issue tokens.
	OtherTenants []string

	// WorkloadIdentity exchanges a Kubernetes service account token.
	WorkloadIdentity bool
	// FederatedTokenFile holds that token; default AZURE_FEDERATED_TOKEN_FILE. Empty ClientID and
	// TenantID also default to the environment.
	FederatedTokenFile string

	// ManagedIdentity uses IMDS, or IDENTITY_ENDPOINT if set.
	ManagedIdentity bool
	// UserAssignedIdentityID is a client ID or an ARM ID; empty selects the system-assigned
	// identity.
	UserAssignedIdentityID string

	ClientSecret string
	// CertificatePath names a PEM or PKCS#12 file with certificate and key.
	CertificatePath     string
	CertificatePassword string
}

// String contains no secrets.
func (c Credentials) String() string { return "azure credentials of client " + c.ClientID }

// GoString contains no secrets.
func (c Credentials) GoString() string { return c.String() }

// NewTokenCredential returns the credential of the first configured identity: workload identity, managed
// identity, client secret, certificate. It sends no request. A nil transport follows no redirects.
func (c Credentials) NewTokenCredential(e Endpoint, transport Transport) (azcore.TokenCredential, error) {
	options := azcore.ClientOptions{Cloud: e.ToConfiguration(), Transport: limitedTransport{defaultTransport(transport, nil)}}
	switch {
	case c.WorkloadIdentity:
		cred, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: options, ClientID: c.ClientID, TenantID: c.TenantID,
			TokenFilePath: c.FederatedTokenFile, DisableInstanceDiscovery: e.Private, AdditionallyAllowedTenants: c.OtherTenants,
		})
		return wrapCredential(cred, err, "workload identity (useFederatedWorkloadIdentityExtension): set aadClientId, tenantId and aadFederatedTokenFile, or have the webhook set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE")
	case c.ManagedIdentity:
		cred, err := azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{
			ClientOptions: options, ID: c.managedIdentityID(),
		})
		return wrapCredential(cred, err, "managed identity (useManagedIdentityExtension)")
	case c.ClientSecret != "":
		cred, err := azidentity.NewClientSecretCredential(c.TenantID, c.ClientID, c.ClientSecret, &azidentity.ClientSecretCredentialOptions{
			ClientOptions: options, DisableInstanceDiscovery: e.Private, AdditionallyAllowedTenants: c.OtherTenants,
		})
		return wrapCredential(cred, err, "client secret: check tenantId, aadClientId and aadClientSecret")
	case c.CertificatePath != "":
		return c.newCertificateCredential(e, options)
	}
	return nil, errors.New("no identity is configured: set useFederatedWorkloadIdentityExtension, useManagedIdentityExtension, or aadClientId with aadClientSecret or aadClientCertPath")
}

// wrapCredential converts a typed nil to an untyped one.
func wrapCredential[T azcore.TokenCredential](cred T, err error, kind string) (azcore.TokenCredential, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %s", kind, redactLine(err.Error()))
	}
	return cred, nil
}

func (c Credentials) managedIdentityID() azidentity.ManagedIDKind {
	switch {
	case c.UserAssignedIdentityID == "":
		return nil
	case strings.HasPrefix(c.UserAssignedIdentityID, "/"):
		return azidentity.ResourceID(c.UserAssignedIdentityID)
	}
	return azidentity.ClientID(c.UserAssignedIdentityID)
}

func (c Credentials) newCertificateCredential(e Endpoint, options azcore.ClientOptions) (azcore.TokenCredential, error) {
	certs, key, err := readCertificate(c.CertificatePath, c.CertificatePassword)
	if err != nil {
		return nil, fmt.Errorf("aadClientCertPath: %w", err)
	}
	cred, err := azidentity.NewClientCertificateCredential(c.TenantID, c.ClientID, certs, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: options, DisableInstanceDiscovery: e.Private, AdditionallyAllowedTenants: c.OtherTenants,
	})
	return wrapCredential(cred, err, "client certificate: check tenantId, aadClientId and aadClientCertPath")
}

func readCertificate(path, password string) ([]*x509.Certificate, crypto.PrivateKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var pass []byte
	if password != "" {
		pass = []byte(password)
	}
	certs, key, err := azidentity.ParseCertificates(content, pass)
	if err != nil {
		// The library's error may quote the file.
		return nil, nil, fmt.Errorf("%s: want a PEM or PKCS#12 file with a certificate and its key, and its password, if it has one, in aadClientCertPassword", path)
	}
	return certs, key, nil
}

// LocalEndpoint returns the endpoint and credential of a local emulator. Its static token is only sent
// to loopback addresses.
func LocalEndpoint(raw string) (Endpoint, azcore.TokenCredential, error) {
	want := func(problem string) (Endpoint, azcore.TokenCredential, error) {
		return Endpoint{}, nil, fmt.Errorf("azure endpoint %q %s: want http://127.0.0.1:PORT", redactText(raw), problem)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "":
		return want("is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return want("is neither http nor https")
	case u.User != nil:
		return want("holds a user name")
	case !IsLoopbackHost(u.Hostname()):
		return want("is not a loopback address, and a static token is sent nowhere else")
	case u.Port() == "" || u.Port() == "0":
		return want("has no port")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return want("has a path, a query or a fragment")
	}
	base := u.Scheme + "://" + u.Host
	return Endpoint{ResourceManager: base, Audience: base}, staticToken{}, nil
}

type staticToken struct{}

// GetToken implements azcore.TokenCredential.
func (staticToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "weir-emulator", ExpiresOn: time.Now().Add(24 * time.Hour)}, nil
}
