# Nothing is imported from here: Activation("relu_squared") finds relu_squared.py.
