print('a server would be here')
