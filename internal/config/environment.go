// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
)

// EnvironmentVariable names the environment file of a private cloud.
const EnvironmentVariable = "AZURE_ENVIRONMENT_FILEPATH"

// Environment has the keys of the environment file that Weir uses.
type Environment struct {
	ResourceManagerEndpoint string `json:"resourceManagerEndpoint,omitempty"`
	TokenAudience           string `json:"tokenAudience,omitempty"`
	ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint,omitempty"`
}

// LoadEnvironment reads an environment file; an empty path means none.
func LoadEnvironment(path string) (Environment, error) {
	var e Environment
	if path == "" {
		return e, nil
	}
	content, err := readFile(path)
	if err != nil {
		return Environment{}, fmt.Errorf("%s: %w", EnvironmentVariable, err)
	}
	keys, err := decodeFile(content)
	if err == nil {
		if _, err = assignKeys(reflect.ValueOf(&e).Elem(), keys, ""); err != nil {
			err = addPosition(content, err)
		}
	}
	if err != nil {
		return Environment{}, fmt.Errorf("%s: %s: %w", EnvironmentVariable, path, err)
	}
	return e, nil
}

// EndpointOverride returns the endpoint that replaces the cloud's, or "". azure.json takes precedence over the
// environment file.
func (c Config) EndpointOverride(e Environment) string {
	return firstNonEmpty(c.ResourceManagerEndpoint, e.ResourceManagerEndpoint)
}
