// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/url"
	"strings"
	"testing"
)

const canary = "CANARY-secret"

func TestEndpointOf(t *testing.T) {
	tests := []struct {
		name, cloud string
		o           EndpointOverrides
		want        Endpoint
		problem     string
	}{
		{"no name", "", EndpointOverrides{}, Endpoint{"https://management.azure.com", "https://management.core.windows.net", "https://login.microsoftonline.com/", false}, ""},
		{"public", "AZUREPUBLICCLOUD", EndpointOverrides{}, Endpoint{"https://management.azure.com", "https://management.core.windows.net", "https://login.microsoftonline.com/", false}, ""},
		{"China", "AzureChinaCloud", EndpointOverrides{}, Endpoint{"https://management.chinacloudapi.cn", "https://management.core.chinacloudapi.cn", "https://login.chinacloudapi.cn/", false}, ""},
		{"US Government", "AzureUSGovernmentCloud", EndpointOverrides{}, Endpoint{"https://management.usgovcloudapi.net", "https://management.core.usgovcloudapi.net", "https://login.microsoftonline.us/", false}, ""},
		{"US Government, short", "azureusgovernment", EndpointOverrides{}, Endpoint{"https://management.usgovcloudapi.net", "https://management.core.usgovcloudapi.net", "https://login.microsoftonline.us/", false}, ""},
		{"public, as the Azure CLI spells it", "AzureCloud", EndpointOverrides{}, Endpoint{"https://management.azure.com", "https://management.core.windows.net", "https://login.microsoftonline.com/", false}, ""},
		{"spaces around it", " azurecloud\t", EndpointOverrides{}, Endpoint{"https://management.azure.com", "https://management.core.windows.net", "https://login.microsoftonline.com/", false}, ""},
		{"spaces alone", " ", EndpointOverrides{}, Endpoint{"https://management.azure.com", "https://management.core.windows.net", "https://login.microsoftonline.com/", false}, ""},
		{"Azure Stack", "AZURESTACKCLOUD", EndpointOverrides{ResourceManager: "https://management.local.azurestack.external/", Audience: "https://management.adfs.azurestack.local/4f", Authority: "https://adfs.local.azurestack.external/"}, Endpoint{"https://management.local.azurestack.external/", "https://management.adfs.azurestack.local/4f", "https://adfs.local.azurestack.external/", true}, ""},
		{"Azure Stack without an endpoint", "AzureStackCloud", EndpointOverrides{}, Endpoint{}, `cloud "AzureStackCloud" needs resourceManagerEndpoint`},
		{"unknown", "AzureGermanCloud", EndpointOverrides{}, Endpoint{}, `cloud "AzureGermanCloud" is unknown: use AzurePublicCloud (or AzureCloud), AzureChinaCloud, AzureUSGovernmentCloud (or AzureUSGovernment)`},
		{"unknown, with an endpoint", "AzureGermanCloud", EndpointOverrides{ResourceManager: "https://arm.example"}, Endpoint{}, `cloud "AzureGermanCloud" is unknown`},
		{"endpoint is audience", "", EndpointOverrides{ResourceManager: "https://arm.example/"}, Endpoint{"https://arm.example/", "https://arm.example", "https://login.microsoftonline.com/", false}, ""},
		{"audience of its own", "", EndpointOverrides{ResourceManager: "https://arm.example", Audience: "https://aud.example"}, Endpoint{"https://arm.example", "https://aud.example", "https://login.microsoftonline.com/", false}, ""},
		{"authority of its own", "", EndpointOverrides{Authority: "https://adfs.example/"}, Endpoint{"https://management.azure.com", "https://management.core.windows.net", "https://adfs.example/", true}, ""},
		{"loopback over plain HTTP", "", EndpointOverrides{ResourceManager: "http://[::1]:8080"}, Endpoint{"http://[::1]:8080", "http://[::1]:8080", "https://login.microsoftonline.com/", false}, ""},
		{"plain HTTP elsewhere", "", EndpointOverrides{ResourceManager: "http://10.0.0.1:8080"}, Endpoint{}, "plain HTTP would show the token"},
		{"a name that sounds local", "", EndpointOverrides{ResourceManager: "http://localhost.example"}, Endpoint{}, "plain HTTP would show the token"},
		{"another scheme", "", EndpointOverrides{ResourceManager: "ftp://arm.example"}, Endpoint{}, "want https"},
		{"no URL", "", EndpointOverrides{ResourceManager: "arm.example"}, Endpoint{}, "want a URL such as"},
		{"a password", "", EndpointOverrides{ResourceManager: "https://u:" + canary + "@arm.example"}, Endpoint{}, "holds a user name"},
		{"a query", "", EndpointOverrides{ResourceManager: "https://arm.example?a=b"}, Endpoint{}, "a query or a fragment"},
		{"authority over plain HTTP", "", EndpointOverrides{Authority: "http://adfs.example"}, Endpoint{}, "activeDirectoryEndpoint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewEndpoint(tt.cloud, tt.o)
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), canary) {
					t.Errorf("got %v, want an error with %q and no secret", err, tt.problem)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

// Responses may contain any polling URL. The token is only sent to Resource Manager and its
// regions.
func TestTokenDestinations(t *testing.T) {
	const plain, elsewhere = "over plain HTTP", "not on the resourceManagerEndpoint's host"
	tests := []struct{ endpoint, to, problem string }{
		{"https://management.azure.com", "https://management.azure.com/x", ""},
		{"https://management.azure.com/", "https://MANAGEMENT.azure.com:443/x", ""},
		{"https://management.azure.com:443", "https://management.azure.com/x", ""},
		{"https://management.azure.com", "https://eastus.management.azure.com/x", ""},
		{"https://management.azure.com", "https://eastus.management.azure.com:8443/x", elsewhere},
		{"https://management.azure.com", "https://management.azure.com:8443/x", elsewhere},
		{"https://management.azure.com", "https://evilmanagement.azure.com/x", elsewhere},
		{"https://management.azure.com", "https://azure.com/x", elsewhere},
		{"https://management.azure.com", "https://management.azure.com.evil.example/x", elsewhere},
		{"https://management.azure.com", "https://management.azure.com@evil.example/x", elsewhere},
		{"https://management.azure.com", "https://management.azure.com./x", elsewhere},
		{"https://management.azure.com", "http://management.azure.com/x", plain},
		{"https://management.azure.com", "http://eastus.management.azure.com:443/x", plain},
		{"https://management.azure.com", "http://127.0.0.1/x", elsewhere},
		{"https://management.azure.com", "https://127.0.0.1/x", elsewhere},
		{"https://eastus.management.azure.com", "https://management.azure.com/x", elsewhere},
		{"https://management.chinacloudapi.cn", "https://management.azure.com/x", elsewhere},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080/x", ""},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8081/x", elsewhere},
		{"http://127.0.0.1:8080", "http://127.0.0.2:8080/x", elsewhere},
		{"http://127.0.0.1:8080", "https://127.0.0.1:8080/x", elsewhere},
		{"http://127.0.0.1:8080", "http://elsewhere.example:8080/x", plain},
		{"http://localhost:8080", "http://a.localhost:8080/x", plain},
		{"http://127.0.0.1", "http://127.0.0.1:80/x", ""},
	}
	for _, tt := range tests {
		t.Run(tt.endpoint+" to "+tt.to, func(t *testing.T) {
			u, err := url.Parse(tt.to)
			if err != nil {
				t.Fatal(err)
			}
			err = Endpoint{ResourceManager: tt.endpoint}.CheckURL(u)
			if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("got %v, want %q", err, tt.problem)
			}
		})
	}
}
