"""The OpenAPI document of the server: what each route takes, and all that it may answer."""
