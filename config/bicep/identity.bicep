// Weir's identity, its federated credential, and its role on the resource group.
param location string
param issuer string
param roleDefinitionId string

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: 'weir'
  location: location
}

resource credential 'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials@2023-01-31' = {
  parent: identity
  name: 'weir'
  properties: {
    issuer: issuer
    subject: 'system:serviceaccount:weir-system:weir'
    audiences: ['api://AzureADTokenExchange']
  }
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, identity.id, roleDefinitionId)
  properties: {
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleDefinitionId
  }
}

output clientId string = identity.properties.clientId
output principalId string = identity.properties.principalId
