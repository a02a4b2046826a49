// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
)

// EnvironmentVariable names the environment file of a private cloud.
const EnvironmentVariable = "AZURE_ENVIRONMENT_FILEPATH"

// Environment is what the environment file says. Its other keys belong to other
// tools and are none of Weir's business.
type Environment struct {
	ResourceManagerEndpoint string `json:"resourceManagerEndpoint,omitempty"`
	TokenAudience           string `json:"tokenAudience,omitempty"`
	ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint,omitempty"`
}

// LoadEnvironment reads an environment file; no path is no file.
func LoadEnvironment(path string) (Environment, error) {
	var e Environment
	if path == "" {
		return e, nil
	}
	content, err := read(path)
	if err != nil {
		return Environment{}, fmt.Errorf("%s: %w", EnvironmentVariable, err)
	}
	keys, err := decode(content)
	if err == nil {
		if _, err = assign(reflect.ValueOf(&e).Elem(), keys, ""); err != nil {
			err = located(content, err)
		}
	}
	if err != nil {
		return Environment{}, fmt.Errorf("%s: %s: %w", EnvironmentVariable, path, err)
	}
	return e, nil
}

// Endpoint returns the endpoint that replaces the cloud's: azure.json's own key, as
// it is the more specific, before the environment file's. Empty is none.
func (c Config) Endpoint(e Environment) string {
	return first(c.ResourceManagerEndpoint, e.ResourceManagerEndpoint)
}
