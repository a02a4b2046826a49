// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	_ "github.com/Azure/azure-sdk-for-go/sdk/azcore/arm/runtime"
	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
)

// Endpoint is an Azure Resource Manager endpoint with its token authority.
type Endpoint struct {
	ResourceManager string
	Audience        string
	// Authority is the base URL of Microsoft Entra ID.
	Authority string
	// Private is set for an authority outside the public clouds, which has no public metadata.
	Private bool
}

// EndpointOverrides replace parts of a cloud's endpoint; empty fields are ignored.
type EndpointOverrides struct {
	ResourceManager, Audience, Authority string
}

// namedCloud is a name in azure.json of a public cloud.
type namedCloud struct {
	name string
	conf *azcloud.Configuration
}

// knownNames are the names that cloud-provider-azure accepts, each cloud's canonical name first.
var knownNames = []namedCloud{
	{publicCloud, &azcloud.AzurePublic},
	{"AzureCloud", &azcloud.AzurePublic},
	{"AzureChinaCloud", &azcloud.AzureChina},
	{"AzureUSGovernmentCloud", &azcloud.AzureGovernment},
	{"AzureUSGovernment", &azcloud.AzureGovernment},
}

const (
	publicCloud = "AzurePublicCloud"
	// stackCloud is a private cloud; its environment file has the endpoints.
	stackCloud = "AzureStackCloud"
)

// CanonicalCloudName returns the canonical name of a cloud, ignoring case and surrounding spaces. The default
// is AzurePublicCloud; unknown names are returned unchanged.
func CanonicalCloudName(name string) string {
	trimmed := strings.TrimSpace(name)
	if trimmed == "" {
		return publicCloud
	}
	for _, c := range knownNames {
		if strings.EqualFold(c.name, trimmed) {
			return knownNames[slices.IndexFunc(knownNames, func(first namedCloud) bool { return first.conf == c.conf })].name
		}
	}
	if strings.EqualFold(trimmed, stackCloud) {
		return stackCloud
	}
	return name
}

// NewEndpoint returns the endpoint of a cloud in azure.json. A ResourceManager override is also the
// default audience. AzureStackCloud has no default endpoint.
func NewEndpoint(name string, o EndpointOverrides) (Endpoint, error) {
	known := CanonicalCloudName(name)
	if known == stackCloud {
		if o.ResourceManager == "" {
			return Endpoint{}, fmt.Errorf("cloud %q needs resourceManagerEndpoint: set it in azure.json, or in the file that AZURE_ENVIRONMENT_FILEPATH names", name)
		}
		known = publicCloud
	}
	i := slices.IndexFunc(knownNames, func(c namedCloud) bool { return c.name == known })
	if i < 0 {
		return Endpoint{}, fmt.Errorf("cloud %q is unknown: use AzurePublicCloud (or AzureCloud), AzureChinaCloud, AzureUSGovernmentCloud (or AzureUSGovernment), or AzureStackCloud with resourceManagerEndpoint", name)
	}
	arm := knownNames[i].conf.Services[azcloud.ResourceManager]
	e := Endpoint{ResourceManager: arm.Endpoint, Audience: arm.Audience, Authority: knownNames[i].conf.ActiveDirectoryAuthorityHost}
	if o.ResourceManager != "" {
		e.ResourceManager, e.Audience = o.ResourceManager, o.ResourceManager
	}
	if o.Audience != "" {
		e.Audience = o.Audience
	}
	if o.Authority != "" {
		e.Authority, e.Private = o.Authority, true
	}
	// The SDK appends "/.default" to the audience.
	e.Audience = strings.TrimRight(e.Audience, "/")
	return e, e.Validate()
}

// Validate returns an error for an invalid endpoint.
func (e Endpoint) Validate() error {
	if err := checkBaseURL("resourceManagerEndpoint", e.ResourceManager); err != nil {
		return err
	}
	if e.Audience == "" {
		return fmt.Errorf("the token audience of %s is empty: set tokenAudience", e.ResourceManager)
	}
	if e.Authority != "" {
		if u, err := url.Parse(e.Authority); err != nil || u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("activeDirectoryEndpoint %q: want https://host/", redactText(e.Authority))
		}
	}
	return nil
}

// checkBaseURL accepts https base URLs, and http only for loopback hosts.
func checkBaseURL(key, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Hostname() == "":
		return fmt.Errorf("%s %q: want a URL such as https://management.azure.com", key, redactText(raw))
	case u.User != nil:
		return fmt.Errorf("%s for host %q holds a user name: remove it, tokens come from the credential", key, u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s for host %q has a query or a fragment: want a base URL", key, u.Host)
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return fmt.Errorf("%s %q: want https, not %s", key, raw, u.Scheme)
	case !IsLoopbackHost(u.Hostname()):
		return fmt.Errorf("%s %q: plain HTTP would show the token to the network; it is accepted for loopback addresses alone, use https", key, raw)
	}
	return nil
}

// IsLoopbackHost reports whether host is localhost or a loopback IP. Other names depend on DNS.
func IsLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// IsPlainHTTP reports whether tokens may be sent over plain HTTP.
func (e Endpoint) IsPlainHTTP() bool {
	u, err := url.Parse(e.ResourceManager)
	return err == nil && u.Scheme == "http" && IsLoopbackHost(u.Hostname())
}

// CheckURL returns an error if a token must not be sent to u. Allowed are the endpoint's host and,
// over https, its subdomains, for regional operation URLs such as eastus.management.azure.com.
func (e Endpoint) CheckURL(u *url.URL) error {
	if u.Scheme != "https" && !IsLoopbackHost(u.Hostname()) {
		return fmt.Errorf("refusing to send a token over plain HTTP to %s, which is not a loopback address", u.Host)
	}
	base, err := url.Parse(e.ResourceManager)
	if err != nil {
		return fmt.Errorf("resourceManagerEndpoint: %w", err)
	}
	host, armHost := strings.ToLower(u.Hostname()), strings.ToLower(base.Hostname())
	region := u.Scheme == "https" && strings.HasSuffix(host, "."+armHost)
	if u.Scheme != base.Scheme || urlPort(u) != urlPort(base) || host != armHost && !region {
		return fmt.Errorf("refusing to send a token to %s, which a response named: it is not on the resourceManagerEndpoint's host %s, nor on one below it", u.Host, base.Host)
	}
	return nil
}

func urlPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// ToConfiguration converts the endpoint to the SDK's type.
func (e Endpoint) ToConfiguration() azcloud.Configuration {
	return azcloud.Configuration{
		ActiveDirectoryAuthorityHost: e.Authority,
		Services: map[azcloud.ServiceName]azcloud.ServiceConfiguration{
			azcloud.ResourceManager: {Endpoint: strings.TrimRight(e.ResourceManager, "/"), Audience: e.Audience},
		},
	}
}
